"""Random tournaments, and what two other programs make of them: gacrux 1.11.65 and tiebreak-core 1.2.0.

It runs in an environment of its own, which has them, and imports nothing of the product:

    python -m venv V && V/bin/pip install gacrux==1.11.65 networkx==3.6.1 tiebreak-core==1.2.0
    V/bin/python tests/projections/tiebreak_oracles.py FIRST COUNT

It prints a line of JSON for each tournament. The pairings are those of gacrux's own generator; then come forfeits, byes
of all kinds, late entries and withdrawals.
"""

import importlib
import json
import random
import sys
from decimal import Decimal
from typing import Any, Final

PLAIN: Final = [
    *("DE", "WIN", "WON", "BPG", "BWG", "PS", "PS/C1", "PS/C2", "REP", "STD", "KS", "KS/L+1", "KS/L-2"),
    *("SB", "SB/C1", "SB/C2", "ARO", "ARO/C1", "ARO/M1"),
]
BUCHHOLZ: Final = ["BH", "BH/C1", "BH/C2", "BH/M1", "BH/M2", "AOB"]
ALONE: Final = ["FB", "FB/C1", "FB/M1"]
"""gacrux keeps what it adjusts for Fore Buchholz, so each of these is computed by itself."""
CHAINS: Final = [["DE", "WIN", "SB"], ["SB/C1", "DE", "PS"], ["STD", "DE", "KS", "BPG"]]
SWISS_CHAINS: Final = [["BH/C1", "BH", "DE", "SB", "DE"], ["DE", "BH/M1", "WON", "DE", "REP"]]
_LATE: Final = 0.08
_FORFEIT: Final = 0.06

Cell = tuple[int, str, str]
"""Opponent (0: none), colour, and result, as TRF has them."""


def tournament(number: int) -> dict[str, Any]:
    """The tournament of a number. Every fourth is a round robin."""
    chance = random.Random(number)
    is_swiss = number % 4 != 3
    players = chance.randint(10, 18) if is_swiss else chance.randint(4, 9)
    rounds = chance.randint(4, 6) if is_swiss else (players - 1 + players % 2) * chance.choice([1, 1, 2])
    cells = _generated(number, players, rounds, is_swiss)
    for cell_round in range(rounds):
        _forfeit(chance, cells, cell_round)
    if is_swiss:
        _leave(chance, cells, rounds)
    else:  # a bye gives nothing
        cells = [[cell if cell[0] else (0, "-", "Z") for cell in its] for its in cells]
    win, draw = chance.choice([(2, 1), (2, 1), (6, 2)])
    return {
        "number": number,
        "pairing": "swiss" if is_swiss else "predetermined",
        "edition": chance.choice(["2024-08", "2026-03", "2026-03"]),
        "win": win,
        "draw": draw,
        "ratings": [chance.randint(1200, 2500) for _ in cells],
        "players": [" ".join(f"{opponent}{colour}{result}" for opponent, colour, result in its) for its in cells],
    }


def _generated(number: int, players: int, rounds: int, is_swiss: bool) -> list[list[Cell]]:
    generator = importlib.import_module("gacrux.tournamentgenerator").tournamentgenerator()
    method = "dutch" if is_swiss else "berger" if rounds <= players else "berger-double"
    sys.argv = ["", "-p", str(players), "-N", str(rounds), "-S", *["0.05", "0.05", "0.05"], "-m", method]
    generator.read_command_line()
    generator.statistics.set_seed(number)
    event = generator.gen_tournament(number)
    text = importlib.import_module("gacrux.trf2json").trf2json().output_file(event, 1, 0)
    lines = [line.ljust(91 + 10 * rounds) for line in text.splitlines() if line.startswith("001")]
    starts = [91 + 10 * one for one in range(rounds)]
    return [[(int(line[at : at + 4].strip() or 0), line[at + 5], line[at + 7]) for at in starts] for line in lines]


def _forfeit(chance: random.Random, cells: list[list[Cell]], at: int) -> None:
    """Turns some games into forfeits, and byes into others."""
    for player, its in enumerate(cells, start=1):
        opponent, colour, _ = its[at]
        if opponent > player and chance.random() < _FORFEIT:
            mine, theirs = chance.choice(["+-", "-+", "--"])
            its[at] = opponent, colour, mine
            cells[opponent - 1][at] = player, cells[opponent - 1][at][1], theirs


def _leave(chance: random.Random, cells: list[list[Cell]], rounds: int) -> None:
    """Gives byes of all kinds. Some players come late or leave early; their opponents get a bye."""
    for its in cells:
        absent = range(0)
        if chance.random() < _LATE:
            absent = range(chance.randint(1, 2))
        elif chance.random() < _LATE:
            absent = range(rounds - chance.randint(1, 3), rounds)
        for at in absent:
            if opponent := its[at][0]:
                cells[opponent - 1][at] = 0, "-", "U"
            its[at] = 0, "-", chance.choice("ZZZH")
    for its in cells:
        for at, (opponent, _, result) in enumerate(its):
            if not opponent and result in "UHZ":
                its[at] = 0, "-", chance.choice([result, result, *"UFHZ"])


# ── gacrux ──────────────────────────────────────────────────────────────────────────────────────────────


def file_of(one: dict[str, Any]) -> str:
    """A tournament as a TRF file."""
    points = _points(one)
    rounds = len(one["players"][0].split())
    score = {"W": one["win"], "D": one["draw"], "L": 0, "A": 0, "P": one["win"], "X": one["draw"]}
    lines = [
        "012 Random",
        f"042 {'2025/05/05' if one['edition'] == '2024-08' else '2026/05/05'}",
        f"092 {one['pairing']}",
        f"142 {rounds}",
        "162  " + "    ".join(f"{code} {Decimal(amount) / 2:.1f}" for code, amount in score.items()),
    ]
    for player, its in enumerate(one["players"], start=1):
        total = Decimal(sum(points[cell[-1]] for cell in its.split())) / 2
        line = f"001 {player:4} m    Player {player}".ljust(48) + f"{one['ratings'][player - 1]:4}"
        line = line.ljust(80) + f"{total:4.1f} {player:4}"
        for cell in its.split():
            line = line.ljust(len(line) + 2) + f"{int(cell[:-2]):04} {cell[-2]} {cell[-1]}"
        lines.append(line)
    return "\n".join(lines) + "\n"


def _points(one: dict[str, Any]) -> dict[str, int]:
    win, draw = one["win"], one["draw"]
    return {"1": win, "+": win, "F": win, "U": win, "=": draw, "H": draw, "0": 0, "-": 0, "Z": 0}


def by_gacrux(one: dict[str, Any], names: list[str]) -> tuple[list[list[str | None]], list[int]]:
    """The values of some tie-breaks after the points, each for all players; and their places."""
    reader = importlib.import_module("gacrux.trf2json").trf2json()
    reader.parse_file(file_of(one), 0)
    if reader.chessjson["status"]["code"]:
        raise ValueError(reader.chessjson["status"])
    is_swiss = one["pairing"] == "swiss"
    params = {"tiebreak": ["PTS", *names], "swiss": is_swiss, "pre_determined": not is_swiss, "check": False}
    event = reader.get_tournament(1)
    result = importlib.import_module("gacrux.tiebreak").tiebreak(event, -1, params).compute_tiebreaks(event, params)
    assert result["rules"][:7] == one["edition"], result["rules"]
    lines = sorted(result["competitors"], key=lambda line: line["cid"])
    scores = [[None if value is None else str(value) for value in line["tiebreakScore"][1:]] for line in lines]
    return [list(column) for column in zip(*scores, strict=True)], [line["rank"] for line in lines]


# ── tiebreak-core ───────────────────────────────────────────────────────────────────────────────────────

_KINDS: Final = {
    "+": "forfeit_win",
    "-": "forfeit_loss",
    "U": "pairing_bye",
    "F": "pairing_bye",
    "H": "requested_bye",
    "Z": "requested_bye",
}


_CRITERIA: Final = {
    "WIN": "wins",
    "WON": "won",
    "BPG": "games_black",
    "BWG": "wins_black",
    "REP": "rounds_elected",
    "STD": "std",
}


def by_core(one: dict[str, Any], names: list[str]) -> list[list[str]]:
    """The values of some tie-breaks, in the edition of 2026."""
    core = importlib.import_module("tiebreak_core")
    points = _points(one)
    players = {}
    for player, its in enumerate(one["players"], start=1):
        games = []
        for number, cell in enumerate(its.split(), start=1):
            opponent = int(cell[:-2])
            if not opponent and one["pairing"] == "predetermined":
                continue
            theirs = one["players"][opponent - 1].split()[number - 1] if opponent else "Z"
            games.append(
                core.GameRecord(
                    opponent_id=opponent or -1,
                    opponent_rating=one["ratings"][opponent - 1] if opponent else 0,
                    score=points[cell[-1]] / 2,
                    color={"b": "black"}.get(cell[-2], "white"),
                    round_number=number,
                    kind=_KINDS.get(cell[-1], "played"),
                    opponent_score=points[theirs[-1]] / 2,
                )
            )
        players[player] = core.PlayerTiebreakData(
            player, one["ratings"][player - 1], sum(game.score for game in games), games
        )
    mode = "swiss" if one["pairing"] == "swiss" else "round_robin"
    rounds = len(one["players"][0].split())

    def value(player: Any, name: str) -> float:
        if name in _CRITERIA:
            edition = importlib.import_module("tiebreak_core.fide2026")
            return edition.calculate(player, players, _CRITERIA[name], rounds, mode, one["draw"] / 2)
        return core.calculate_descriptor(player, players, name, rounds, mode, one["draw"] / 2)

    return [[repr(value(player, name)) for player in players.values()] for name in names]


def main(first: int, count: int) -> None:
    for number in range(first, first + count):
        one = tournament(number)
        is_swiss = one["pairing"] == "swiss"
        names = PLAIN + BUCHHOLZ * is_swiss
        values, ranks = by_gacrux(one, names)
        one["values"] = dict(zip(names, values, strict=True))
        one["places"] = {" ".join(names): ranks}
        for name in ALONE * is_swiss:
            one["values"][name] = by_gacrux(one, [name])[0][0]
        for chain in CHAINS + SWISS_CHAINS * is_swiss:
            one["places"][" ".join(chain)] = by_gacrux(one, chain)[1]
        if one["edition"] == "2026-03":
            core = [name for name in one["values"] if name != "DE"]
            one["core"] = dict(zip(core, by_core(one, core), strict=True))
        sys.stdout.write(json.dumps(one, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
