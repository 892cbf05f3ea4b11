"""Data sets, standard coordinates (columns centred and scaled) and folds, from files and tables.

A file becomes a table of numbers in four steps:

1. Read: `text_tables`, `readers` and `frames` return the selected columns (`column_choice`) of a file or a frame.
2. Facts: `columns` has the numbers, the missing cells and the texts of each column; `number_format` converts texts to
   numbers.
3. Treatment: `missing_and_text` converts dates, imputes missing cells and encodes text values as the options request;
   `column_faults` raises an error for any other cell and names the option that reads such cells.
4. Numbers: `dataset` has the resulting arrays. `Applied` stores the preprocessing, so that it can be repeated for new
   rows.
"""
