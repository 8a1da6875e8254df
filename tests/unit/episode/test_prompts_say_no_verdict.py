"""What the agent is told in each round."""

from stayer_evaluator.episode.prompts import VERSION, build_prompt, template_digest


def test_the_first_round_has_the_instruction_and_no_residual():
    prompt = build_prompt("Build {braces} & more.", 1, ("parser",))

    assert "Build {braces} & more." in prompt.text
    assert "parser" not in prompt.text
    assert "requirement_patches/<name>.diff" in prompt.text
    assert (prompt.version, prompt.template) == (VERSION, template_digest())


def test_later_rounds_have_the_whole_instruction_and_name_the_residual():
    first = build_prompt("Build it.", 1, ("parser", "engine"))
    second = build_prompt("Build it.", 2, ("parser", "engine"))

    assert second.text.startswith(first.text)
    assert second.text.index("- parser\n- engine") > len(first.text)


def test_visible_tests_are_named_only_where_they_lie_attached():
    hidden = build_prompt("Build it.", 1, ())
    attached = build_prompt("Build it.", 1, (), suite="/tests")

    assert "/tests" not in hidden.text
    assert "/tests" in attached.text


def test_no_prompt_speaks_of_results():
    text = build_prompt("X", 3, ("parser",), suite="/tests").text.lower()

    for word in ("passed", "failed", "score", "coverage", "percent", "cleared", "ready"):
        assert word not in text


def test_equal_templates_have_one_digest():
    assert template_digest() == build_prompt("anything", 4, ("x",)).template
    assert len(template_digest()) == 64
