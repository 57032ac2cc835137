"""Check for the exercise of `book/spanbert/single_sequence`."""

from collections.abc import Callable

from spanbert_tutorial.exercises.diagnosis import Diagnosis, say

# Lengths of the sentences of each document, and the length n of the model's input. No sentence is
# longer than n − 2.
CASES = [
    (
        [[4, 3, 2], [4, 2, 1, 5]],
        9,
    ),  # other blocks for each of n, n − 1 and n − 2; both documents leave a rest
    ([[2, 2], [3, 1], [6]], 12),  # each document fits one block, and two documents would
    ([[5, 5], [1]], 12),  # a block is filled to its last token
    ([[6, 5, 5], [3, 6, 1]], 12),
    ([[1] * 7], 5),
]

Documents = list[list[list[int]]]
Attempt = Callable[[Documents, int], list[list[int]]]


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


def _case_in_words(documents: Documents, n: int) -> str:
    lengths = [[len(sentence) for sentence in document] for document in documents]
    return f"with sentences of {lengths} tokens and n = {n}"


def mistake(blocks: list[list[int]], wanted: list[list[int]], documents: Documents, n: int) -> str:
    """What is wrong with blocks that are not the wanted ones."""
    flat = [[token for sentence in document for token in sentence] for document in documents]
    given = [token for block in blocks for token in block]
    if any(isinstance(token, str) for token in given):
        return "you put [CLS] or [SEP] in a block. Leave them out, but keep two positions for them."
    if any(not isinstance(token, int) for token in given):
        return "a block contains lists. Make each block one flat list of tokens."
    if [] in blocks:
        return "a block is empty. Check whether the block has any tokens before you close it."
    goes_on = any(a == b[: len(a)] for a, b in zip(blocks, blocks[1:], strict=False))
    if goes_on and set(given) == {token for document in flat for token in document}:
        return "you continue a block in the next document. Begin each document with an empty block."
    if problem := lost(given, flat):
        return problem
    if any(
        len({number for number, d in enumerate(flat) if set(block) & set(d)}) > 1
        for block in blocks
    ):
        return (
            "you put tokens of two documents in one block. Close the block where a document ends."
        )
    ends = {sentence[-1] for document in documents for sentence in document}
    if any(block[-1] not in ends for block in blocks):
        return (
            "you end a block inside a sentence. A sentence that does not fit begins the next block."
        )
    longest = max(map(len, blocks))
    if longest > n - 2:
        return (
            f"a block has {longest} tokens: with [CLS] and [SEP] that makes {longest + 2}, "
            f"more than n."
        )
    return not_greedy(blocks, documents, n)


def lost(given: list[int], flat: list[list[int]]) -> str:
    """What is missing, double or out of order; empty when every token stands once and in order."""
    every = [token for document in flat for token in document]
    missing = set(every) - set(given)
    if missing:
        last_only = all(
            every[-1] in missing if d is flat[-1] else not set(d) & missing for d in flat
        )
        if last_only:
            return (
                f"the last block of all is lost ({len(missing)} tokens). Close what is left "
                f"after the loop."
            )
        if all(d[-1] in missing for d in flat if set(d) & missing):
            return (
                f"the last block of a document is lost ({len(missing)} tokens). Close it, "
                f"however short it is."
            )
        return f"{len(missing)} tokens are lost."
    return "" if given == every else "tokens occur twice or out of order."


def not_greedy(blocks: list[list[int]], documents: Documents, n: int) -> str:
    """Why whole, ordered, short blocks of one document are still not the wanted ones: room is left
    over."""
    if len(blocks) == sum(map(len, documents)):
        return (
            "you give every sentence its own block. Fill a block as long as the next sentence fits."
        )
    if blocks == pack(documents, n - 1):
        return "a block that would be exactly full is closed too early: it may hold n − 2 tokens."
    if blocks == pack(documents, n - 2):
        return (
            "[CLS] and [SEP] are counted twice: there is room for n − 2 tokens, and you leave "
            "two of them empty."
        )
    return "a block is closed although the next sentence would fit."


diagnose_packing = Diagnosis(
    cases=[(made_documents(lengths), n) for lengths, n in CASES],
    where=_case_in_words,
    read=lambda blocks, *case: [list(block) for block in blocks],
    returns="a list of blocks, each a list of tokens",
    right=pack,
    otherwise=mistake,
    correct="whole sentences of one document, as many as fit between [CLS] and [SEP].",
)


def check_packing(attempt: Attempt) -> None:
    """Prints whether `attempt(documents, n)` packs blocks for an input of n with [CLS] and
    [SEP]."""
    say(diagnose_packing(attempt))
