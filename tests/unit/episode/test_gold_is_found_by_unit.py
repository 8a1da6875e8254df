"""Gold patches in an archive."""

from makers_episode import GOLD, UNITS, make_task
from stayer_evaluator.episode.agent import oracle_script
from stayer_evaluator.episode.gold import Gold, gold_of
from stayer_evaluator.episode.steps import ApplyDiff


def test_a_units_patch_lies_under_its_name_or_where_the_map_says():
    found = gold_of(
        {
            "gold_patches/parser.diff": (b"P", False),
            "gold_patches/pr_engine.diff": (b"E", False),
            "elsewhere/r.diff": (b"R", False),
            "gold_patches/report.diff": (b"not this", False),
            "slug_diff_map.json": (b'{"report.yaml": "elsewhere/r.diff", "x": 3}', False),
        },
        make_task(),
    )

    assert found.units == {"parser": b"P", "engine": b"E", "report": b"R"}


def test_units_without_text_have_no_patch():
    found = gold_of({"gold_patches/parser.diff": (b" \n", False)}, make_task())

    assert found == Gold({})
    assert oracle_script(found, make_task()).steps(1) == ()


def test_a_damaged_map_is_as_good_as_none():
    found = gold_of(
        {"slug_diff_map.json": (b"[", False), "gold_patches/parser.diff": (b"P", False)},
        make_task(),
    )

    assert found.units == {"parser": b"P"}


def test_the_oracle_follows_the_reference_order_and_then_the_tasks():
    gold = Gold({unit: GOLD[unit].encode() for unit in UNITS})

    script = oracle_script(gold, make_task(reference_order=("engine", "parser")))

    assert script.steps(1) == tuple(ApplyDiff(unit=u) for u in ("engine", "parser", "report"))


def test_one_patch_for_all_is_the_patch_of_every_unit():
    gold = gold_of({"gold-patch.diff": (b"W", False)}, make_task())

    assert oracle_script(gold, make_task()).steps(1) == (ApplyDiff(diff="W", patch_of=UNITS),)


def test_parts_win_over_the_whole():
    gold = gold_of(
        {"gold-patch.diff": (b"W", False), "gold_patches/parser.diff": (b"P", False)}, make_task()
    )

    assert oracle_script(gold, make_task()).steps(1) == (ApplyDiff(unit="parser"),)
