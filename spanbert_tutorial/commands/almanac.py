"""`python -m spanbert_tutorial almanac`: the small world of the book, written again. Chapter:
`book/tasks/question_answering`.
"""

import argparse


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of `almanac`."""
    parser.add_argument("--output", required=True, metavar="FOLDER", help="folder to write to")


def almanac(options: argparse.Namespace) -> None:
    """Documents, vocabulary, questions and relations, the same as the shipped ones."""
    from spanbert_tutorial import runs
    from spanbert_tutorial.almanac import questions, relations

    runs.write_almanac(options.output)
    questions.write(options.output)
    relations.write(options.output)
    print(f"The almanac is in {options.output}.")
