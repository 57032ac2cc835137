"""The generator of the almanac, the small fictional world of the book: its facts (`world`), sentences
(`text`), documents, questions and labels, exact by construction. The package only reads its files.

`python -m research almanac --output FOLDER` writes all of them again. Page: `book/welcome`.
"""
