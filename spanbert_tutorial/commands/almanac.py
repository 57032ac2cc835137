"""`python -m spanbert_tutorial almanac`: the small world of the book, written again. Chapter:
`book/tasks/question_answering`.
"""

import argparse

from spanbert_tutorial.errors import NoRoom


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of `almanac`."""
    parser.add_argument("--output", required=True, metavar="FOLDER", help="new folder to write to")


def almanac(options: argparse.Namespace) -> None:
    """Documents, vocabulary, questions and labels, the same as the shipped ones; all of them or
    nothing."""
    from spanbert_tutorial.almanac import coreference, pairs, questions, relations, vocabulary
    from spanbert_tutorial.engine.files import whole_folder
    from spanbert_tutorial.pretraining.checkpoints import check_output

    output = check_output(options.output)
    try:
        with whole_folder(output) as made:
            vocabulary.write_almanac(made)
            questions.write(made)
            coreference.write(made)
            pairs.write(made)
            relations.write(made)
    except (OSError, NoRoom) as error:
        raise NoRoom(
            f"the almanac cannot be written to {output} ({error}): make room, or give another."
        ) from error
    print(f"The almanac is in {output}.")
