"""What several rules ask of a view is answered once, and of that view only."""

from dataclasses import replace

from makers_views import make_view
from stayer_operator.core.trial.view import TrialView, asked_once


def test_a_question_is_answered_once_a_view() -> None:
    asked = []

    @asked_once
    def moment(view: TrialView) -> float:
        asked.append(view.now)
        return view.now

    view = make_view()
    later = replace(view, now=view.now + 1)

    assert [moment(view), moment(view), moment(later)] == [view.now, view.now, later.now]
    assert asked == [view.now, later.now]


def test_answers_make_no_difference_between_views() -> None:
    view, other = make_view(), make_view()

    asked_once(lambda view: view.now)(view)

    assert view == other
