"""The native exact solver: every tau of a fold from one path tree, hard ones from perspective trees."""
