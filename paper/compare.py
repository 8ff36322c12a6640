"""The final table: what the paper prints, what we find, whether they agree, and why not."""

from __future__ import annotations

from math import comb, log10

import binreps as br
from paper.output import write_table
from paper.settings import Comparison, Settings, text

WORDS = {True: "yes", False: "no", None: "–"}


def in_words() -> list[Comparison]:
    """Statements of the paper that need no data; docs/errata.md has them all."""
    printed = 110 * log10(comb(64, 32) * comb(84, 42))
    right = 110 * log10(comb(64, 8) * comb(84, 18))
    share = round(0.9 * 148)
    return [
        text(
            "(d) number of possible readings with given error counts",
            f"(C(64,32)·C(84,42))^110 = 10^{printed:.0f}",
            f"(C(64,8)·C(84,18))^110 = 10^{right:.0f}",
            "8 ≈ 64 q̄ and 18 ≈ 84 p̄ errors, not one half [errata: combinations]",
        ),
        text(
            "(d) women in the training set",
            "90 % of 110",
            f"90 % of 148 = {share}",
            f"and {148 - share} others [E8]",
        ),
    ]


def write(settings: Settings, lines: list[Comparison]) -> str:
    """The comparison as a file and as text: a table of what is printed, then what we found besides."""
    rows = [
        {
            "what": line.what,
            "printed": line.printed,
            "ours": line.ours,
            "agree": WORDS[line.agrees],
            "why": line.why,
        }
        for line in lines
    ]
    write_table(settings, "comparison", rows)
    printed = [row for row in rows if row["agree"] != WORDS[None]]
    agree = sum(row["agree"] == WORDS[True] for row in printed)
    note = f"{agree} agree, {len(printed) - agree} differ for the reason beside them"
    table = br.Table({key: [row[key] for row in printed] for key in rows[0]}, note=note)
    besides = [
        f"{row['what']}: {row['ours']}" + (f" ({row['why']})" if row["why"] else "")
        for row in rows
        if row not in printed
    ]
    return "\n".join([str(table), "", "No printed number is known for these:", *besides])
