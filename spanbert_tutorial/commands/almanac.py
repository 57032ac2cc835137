"""`almanac`: generates the small world of the book again. Chapter: `book/tasks/question_answering`."""

import argparse

from spanbert_tutorial.errors import NoRoom


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `almanac`."""
    parser.add_argument("--output", required=True, metavar="FOLDER", help="new folder to write to")


def almanac(options: argparse.Namespace) -> None:
    """Writes documents, vocabulary, questions and labels, the same as the shipped ones, completely
    or not at all."""
    from spanbert_tutorial.almanac import coreference, pairs, questions, relations, vocabulary
    from spanbert_tutorial.engine.files import whole_folder
    from spanbert_tutorial.pretraining.checkpoints import check_output

    output = check_output(options.output)
    try:
        with whole_folder(output) as folder:
            vocabulary.write_almanac(folder)
            questions.write(folder)
            coreference.write(folder)
            pairs.write(folder)
            relations.write(folder)
    except (OSError, NoRoom) as error:
        raise NoRoom(
            f"the almanac cannot be written to {output} ({error}): make room, or give another --output."
        ) from error
    print(f"The almanac is in {output}.")
