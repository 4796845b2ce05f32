"""The demo: a day's transcript that ships with the product, handed in, asked, rebuilt and checked."""
