"""The page of prerequisites: every number of its examples is read from the page and computed
again."""

import json
import math
import re
import statistics

from scipy.stats import t as student

from environment import ROOT

PAGE = (ROOT / "book" / "prerequisites.md").read_text(encoding="utf-8")
NUMBER = r"-?\d+(?:\.\d+)?"
CHAIN = re.compile(r"(?<!\$)\$([^$]*?\d[^$]*?(?:=|\\approx)[^$]*)\$(?!\$)")


def value_of(formula: str) -> float:
    """The value of an arithmetic formula in LaTeX, with the few commands that the page uses."""
    for latex, python in (
        (r"\\cdot", "*"),
        (r"\\sqrt\{([^}]*)\}", r"sqrt(\1)"),
        (r"\\(ln|exp)", r"\1"),
        (r"\^", "**"),
    ):
        formula = re.sub(latex, python, formula)
    assert re.fullmatch(r"[\d\s.+*/()-]|(?:[\d\s.+*/()-]|ln|exp|sqrt)+", formula), (
        f"{formula} is no arithmetic"
    )
    return eval(formula, {"__builtins__": {}}, {"ln": math.log, "exp": math.exp, "sqrt": math.sqrt})


def step_of(number: str) -> float:
    """How much the last printed digit of a number is worth."""
    return 10.0 ** -len(number.partition(".")[2])


def numeric_chains(page: str) -> list[tuple[str, str, bool]]:
    """(formula, result, exact?) of all inline formulas that end in "= number" or "≈ number",
    letters left out."""
    found = []
    for formula in CHAIN.findall(page):
        plain = re.sub(r"\s+", " ", formula)
        left, _, right = plain.rpartition("=" if "=" in plain else "\\approx")
        if not re.search(r"\b[a-zA-Z]\b|mathbf|text", left):
            found.append((left.strip(), right.strip(), "=" in plain))
    return found


def wrong_chains(page: str) -> list[str]:
    """Formulas whose value is not the printed result; with ≈ not even when it is rounded as
    printed."""
    return [
        f"{left} is {value_of(left):.5f}, the page says {right}"
        for left, right, exact in numeric_chains(page)
        if abs(value_of(left) - float(right)) > (0 if exact else step_of(right) / 2) + 1e-9
    ]


def table(page: str, first_heading: str) -> list[list[str]]:
    """The cells of the table whose first heading is this one."""
    lines = page.split(f"| {first_heading} |", 1)[1].split("\n")[2:]
    rows = [line for line in lines[: lines.index("")]]
    return [[cell.strip().strip("$") for cell in row.strip("|").split("|")] for row in rows]


def numbers(text: str) -> list[float]:
    return [float(number) for number in re.findall(NUMBER, text)]


def said(page: str, pattern: str) -> tuple[str, ...]:
    """What the page says at a sentence, line breaks apart; fails when the sentence is not there."""
    match = re.search(pattern.replace(" ", r"\s+"), page)
    assert match, f"the page has no sentence like {pattern}"
    return match.groups()


def check_softmax(page: str) -> None:
    rows = table(page, "$z_i$")
    scores = [float(row[0]) for row in rows]
    assert said(page, r"For the scores (\d), (\d) and (\d):") == tuple(row[0] for row in rows)
    total = sum(math.exp(score) for score in scores)
    for score, (_, exponential, probability) in zip(scores, rows, strict=True):
        assert (
            f"{math.exp(score):.3f}" == exponential
            and f"{math.exp(score) / total:.3f}" == probability
        )
    _, exponentials, probabilities = zip(*rows, strict=True)
    whole = f"{sum(map(float, exponentials)):.3f}"
    one, two = exponentials[:2]
    formulas = [
        f"{' + '.join(exponentials)} = {whole}",
        f"{one} / {whole} \\approx {probabilities[0]}",
    ]
    formulas += [f"{' + '.join(probabilities)} = 1"]
    formulas += [
        f"{mine} / ({one} + {two}) \\approx {math.exp(int(z)) / (math.exp(2) + math.exp(1)):.3f}"
        for mine, z in ((one, scores[0]), (two, scores[1]))
    ]
    assert all(f"${formula}$" in page for formula in formulas)


def check_attention(page: str) -> None:
    query = numbers(*said(page, r"\\mathbf q = \(([^)]*)\)"))
    (width,) = said(page, r"Take three tokens, \$d = (\d)\$")
    rows = table(page, "token")
    softmax = table(page, "$z_i$")
    keys = [numbers(row[1]) for row in rows]
    values = [numbers(row[5]) for row in rows]
    assert {int(width)} == {len(vector) for vector in (query, *keys)} and [
        row[0] for row in rows
    ] == ["1", "2", "3"]
    assert f"divided by $\\sqrt{{{width}}} = 2$" in page
    products = [sum(map(float.__mul__, query, key)) for key in keys]
    scores = [product / math.sqrt(len(query)) for product in products]
    weights = [math.exp(score) / sum(map(math.exp, scores)) for score in scores]
    printed = [(float(row[2]), float(row[3]), row[4]) for row in rows]
    assert printed == list(
        zip(products, scores, (f"{weight:.3f}" for weight in weights), strict=True)
    )
    assert [row[4] for row in rows] == [row[2] for row in softmax]  # "the weights are the same"
    mixture = [sum(map(float.__mul__, weights, column)) for column in zip(*values, strict=True)]
    assert said(page, r"output is \$\(([\d.]+), ([\d.]+)\)\$") == tuple(
        f"{number:.2f}" for number in mixture
    )
    for number, column in enumerate(zip(*values, strict=True)):  # the two sums written out
        name = ("first number", "second")[number]
        factors = "{:g}, {:g} and {:g}".format(*column)
        terms = " + ".join(
            f"{float(row[4]) * value:.2f}" for row, value in zip(rows, column, strict=True)
        )
        formula = re.escape(f"${terms} = {mixture[number]:.2f}$")
        sentence = f"For its {name}, multiply the weights by {factors}: ".replace(" ", r"\s+")
        assert re.search(sentence + formula, page)


def check_words(page: str) -> None:
    """Numbers that stand in sentences."""
    target, start = said(page, r"\$\(w - (\d)\)\^2\$ and \$w\$ is (\d)\.")
    (rate,) = said(page, r"learning rate ([\d.]+) the step")
    loss = (int(start) - int(target)) ** 2
    gradient = 2 * (int(start) - int(target))
    after = int(start) - float(rate) * gradient
    steps = [f"({start} - {target})^2 = {loss}", f"2 \\cdot ({start} - {target}) = {gradient}"]
    steps += [f"{start} - {rate} \\cdot ({gradient}) = {after:g}"]
    steps += [f"({after:g} - {target})^2 = {(after - int(target)) ** 2:.2f}"]
    assert all(f"${step}$" in page for step in steps)
    losses = numbers(*said(page, r"held-out losses ([^$]*?) the mean is"))
    assert f"$({' + '.join(str(loss) for loss in losses)}) / {len(losses)} = 2$" in page
    differences = numbers(*said(page, r"five differences ([^$]*?) between two methods"))
    assert f"$({' + '.join(map(str, differences))}) / {len(differences)} = 0.2$" in page
    (factor,) = said(page, r"interval is ([\d.]+) standard errors")
    deviation = statistics.stdev(differences)
    error = deviation / math.sqrt(len(differences))
    half = student.ppf(0.975, len(differences) - 1) * error
    squares = f"{deviation**2 * (len(differences) - 1):.2f}"
    steps = [f"\\sqrt{{{squares} / {len(differences) - 1}}} \\approx {deviation:.4f}"]
    steps += [f"{deviation:.4f} / \\sqrt{{{len(differences)}}} \\approx {error:.4f}"]
    steps += [f"{factor} \\cdot {error:.4f} \\approx {half:.3f}"]
    assert all(f"${step}$" in page for step in steps) and said(
        page, r"the mean add up to (\d\.\d+)\."
    ) == (squares,)
    assert f"{student.ppf(0.975, len(differences) - 1):.3f}" == factor
    assert said(page, r"\$(0\.\d+) \\pm (0\.\d+)\$") == (
        f"{statistics.mean(differences):.2f}",
        f"{half:.2f}",
    )
    vectors = [
        numbers(part) for part in said(page, r"for \$\(([^)]*)\)\$ and \$\(([^)]*)\)\$ it is")
    ]
    terms = " + ".join(f"{a:g} \\cdot {b:g}" for a, b in zip(*vectors, strict=True))
    assert f"${terms} = " in page


def check_cross_entropy(page: str) -> None:
    probabilities = [row[2] for row in table(page, "$z_i$")]
    for place in (0, 2):
        loss = -math.log(float(probabilities[place]))
        assert f"$-\\ln({probabilities[place]}) \\approx {loss:.2f}$" in page
    frequencies = said(page, r"frequencies ([\d.]+), ([\d.]+) and ([\d.]+)\.")
    assert sum(map(float, frequencies)) == 1
    entropy = sum(-float(p) * math.log(float(p)) for p in frequencies)
    half, *quarters = map(float, frequencies)
    assert half == sum(quarters) == 0.5 and len(set(quarters)) == 1  # "the other half"
    costs = [f"{-math.log(p):.2f}" for p in (half, quarters[0])]
    steps = [f"-\\ln({p}) \\approx {cost}" for p, cost in zip(frequencies[:2], costs, strict=True)]
    steps += [" + ".join(f"{half} \\cdot {cost}" for cost in costs) + f" = {entropy:.2f}"]
    assert all(f"${step}$" in page for step in steps) and entropy < math.log(len(frequencies))
    results = json.loads(
        (ROOT / "data" / "results" / "token_vs_span.json").read_text(encoding="utf-8")
    )
    unigram = f"{results['unigram_entropy']:.2f}"
    assert said(page, r"frequencies of single tokens, ([\d.]+)\s+nats") == (unigram,)
    assert f"$\\exp({unigram}) \\approx " in page and f"unigram entropy is {unigram}" in page
    sides, perplexity = said(
        page, r"\$\\ln\((\d)\).{0,30} nats is as bad as throwing a fair die, perplexity (\d)"
    )
    assert sides == perplexity == "6"
    (tokens,) = said(page, r"evenly among \$V = ([\d{},]+)\$ tokens")
    assert (
        tokens.replace("{,}", "") == str(results["vocabulary"])
        and f"$\\ln({results['vocabulary']})" in page
    )


def check_self_test(page: str) -> None:
    part = page.split("## Test yourself")[1].split("\n## ")[0]
    assert part.count("<details><summary>Answer</summary>") == part.count("</details>") == 5
    assert re.findall(r"^(\d)\. ", part, re.MULTILINE) == list("12345")
    first = said(part, r"Three scores are (\d), (\d) and (\d)")
    (each,) = said(part, r"Each gets ([\d.]+)")
    assert len(set(first)) == 1 and each == f"{1 / len(first):.3f}"
    given = said(part, r"probability ([\d.]+), then ([\d.]+)\.")
    assert f"$(-\\ln({given[0]}) - \\ln({given[1]})) / 2 \\approx" in part
    (factor,) = said(part, r"by the factor ([\d.]+)\?")
    assert factor == f"{math.e:.3f}" and f"${factor} / ({factor} + 1) \\approx " in part
    values = [numbers(row[5])[0] for row in table(page, "token")]
    assert f"$({' + '.join(f'{value:g}' for value in values)}) / 3 \\approx " in part
    trained, held_out = said(
        part, r"loss of ([\d.]+) on its training text and of ([\d.]+) on held-out text"
    )
    (entropy,) = said(part, r"where the unigram entropy is (\d\.\d+)")
    assert float(trained) < float(entropy) < float(held_out)


CHECKS = [check_softmax, check_attention, check_words, check_cross_entropy, check_self_test]


def failures(page: str) -> list[str]:
    """What does not hold on a page; none on the real one."""
    found = wrong_chains(page)
    for check in CHECKS:
        try:
            check(page)
        except (AssertionError, ValueError, IndexError) as error:
            found.append(f"{check.__name__}: {error}")
    return found


def test_every_number_of_the_page_holds():
    assert len(numeric_chains(PAGE)) >= 25
    assert failures(PAGE) == []


def survivors(page: str) -> set[str]:
    """Each number of a page that can grow by one in its last digit without a failure, with some
    text before it."""
    found = set()
    for place in re.finditer(r"(?<![\w.])\d+(?:\.\d+)?", page):
        number = place.group()
        decimals = len(number.partition(".")[2])
        changed = (
            page[: place.start()]
            + f"{float(number) + step_of(number):.{decimals}f}"
            + page[place.end() :]
        )
        if not failures(changed):
            found.add(" ".join(page[place.start() - 16 : place.end()].split()))
    return found


# Numbers that nothing on the page depends on: free choices of an example, numbers of a sentence,
# places in a paper.
FREE = {
    "e same way, and 0",
    "ed*), and add a 95",
    "oes not contain 0",
    "ities add up to 1",
    "cores differ by 1",
    ".718$. Adding 100",
    "the probability 0",
    "---| | 1 | $(1, 5",
    ")$ | | 2 | $(1, 0",
    ")$ | | 3 | $(0, 7",
    "garithm to base 2",
    "score grows by 1",
    "From the scores 0",
    "he scores 0 and 0",
    "l has a loss of 0.3",
    "ing text and of 6.5",
    "//arxiv.org/abs/1706.03762",
    "s/1706.03762), §3.2",
}


def test_a_changed_number_fails():
    assert survivors(PAGE) == FREE


def test_the_links_lead_somewhere():
    for target in re.findall(r"\]\(((?!http)[^)#]+)\)", PAGE):
        assert (ROOT / "book" / target).is_file(), target
