"""stub"""


class WideFold: ...


def is_wide(data):
    return False
