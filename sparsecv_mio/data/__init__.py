"""Data sets, standard coordinates (columns centred and scaled) and folds, from files and tables.

A file becomes a table of numbers in four steps:

1. `text_tables`, `readers` and `frames` read the selected columns (`column_choice`) of a file or a data frame.
2. `columns` separates the numbers, the missing cells and the texts of each column, and `number_format` converts texts
   to numbers.
3. `missing_and_text` converts dates, imputes missing cells and encodes text values as the options request. For any
   other cell that is not a number, `column_faults` raises an error that names the option for such cells.
4. `dataset` stores the resulting arrays of numbers. `Applied` stores the preprocessing, so that it can be repeated for
   new rows.
"""
