"""Check for the exercise of `book/spanbert/single_sequence`."""

from spanbert_tutorial.exercises.diagnosis import Check, plain

# Lengths of the sentences of each document, and the length n of the model's input. No sentence is
# longer than n − 2.
LENGTHS = [
    ([[4, 3, 2], [4, 2, 1, 5]], 9),  # other blocks for n, n − 1 and n − 2; both leave a rest
    ([[2, 2], [3, 1], [6]], 12),  # each document fits one block, and two documents would
    ([[5, 5], [1]], 12),  # a block is filled to its last token
    ([[6, 5, 5], [3, 6, 1]], 12),
    ([[1] * 7], 5),
]
Documents = list[list[list[int]]]


def made_documents(lengths: list[list[int]]) -> Documents:
    """Documents of sentences of tokens; each token has a number of its own, counted through."""
    tokens = iter(range(sum(map(sum, lengths))))
    return [[[next(tokens) for _ in range(length)] for length in document] for document in lengths]


def pack(documents: Documents, n: int) -> list[list[int]]:
    """Whole sentences of one document, greedily, at most n − 2 tokens a block."""
    blocks = []
    for document in documents:
        block: list[int] = []
        for sentence in document:
            if block and len(block) + len(sentence) > n - 2:
                blocks.append(block)
                block = []
            block = block + sentence
        blocks.append(block)
    return blocks


#: Prints whether `attempt(documents, n)` packs blocks for an input of n with [CLS] and [SEP].
check_packing = Check(
    [(made_documents(lengths), n) for lengths, n in LENGTHS],
    pack,
    {
        "you put tokens of two documents in one block. "
        "Close the block where a document ends.": lambda texts, n: pack([sum(texts, [])], n),
        "the last block of a document is lost. Close it, however short it is.": lambda texts, n: (
            sum((pack([one], n)[:-1] for one in texts), [])
        ),
        "a block has more than n − 2 tokens: "
        "[CLS] and [SEP] need two positions.": lambda documents, n: pack(documents, n + 2),
    },
    "whole sentences of one document, as many as fit between [CLS] and [SEP].",
    returns="a list of blocks, each a list of tokens",
    read=lambda blocks: [plain(list(block)) for block in blocks],
)
