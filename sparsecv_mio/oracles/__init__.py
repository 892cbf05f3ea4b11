"""GLRU, IACV and TreeCV: methods of other papers, by themselves and as helpers of the search."""
