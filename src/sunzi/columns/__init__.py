"""Reports in a column of a table: counted where they are good, named where they are not, each id once."""
