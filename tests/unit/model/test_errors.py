import pytest

from hybridjobs.model.errors import ProjectError, SpecError, SpecProblem, closest, shown, suggestion


def test_message_names_file_key_value_problem_and_remedy() -> None:
    error = SpecError(
        "there is no such region", file="stages/dev.toml", key="region", value="us-est-1", remedy='Write "us-east-1"'
    )

    assert str(error) == 'stages/dev.toml: region = "us-est-1": there is no such region. Write "us-east-1".'
    assert isinstance(error, ProjectError)
    assert (error.file, error.key, error.value) == ("stages/dev.toml", "region", "us-est-1")


def test_message_without_file_key_and_value_is_problem_and_remedy() -> None:
    assert str(SpecError("nothing is declared", remedy="Declare a job")) == "nothing is declared. Declare a job."


def test_one_error_lists_all_problems() -> None:
    problems = [SpecProblem("first is wrong", "Mend it", "a.toml", "one", 1), SpecProblem("so is this", "Mend it too")]

    error = SpecError.of(problems)

    assert error.problems == tuple(problems)
    assert str(error).splitlines() == [
        "2 problems:",
        "  a.toml: one = 1: first is wrong. Mend it.",
        "  so is this. Mend it too.",
    ]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hyperparameters.region", "AKIAIOSFODNN7EXAMPLE"),
        ("hyperparameters.pem", "-----BEGIN RSA PRIVATE KEY-----\nMIIE"),
        ("hyperparameters.password", "hunter2"),
        ("hyperparameters.dbPassword", "hunter2"),
    ],
)
def test_credentials_are_never_shown(key: str, value: str) -> None:
    message = str(SpecError("this is refused", key=key, value=value, remedy="Remove it"))

    assert value not in message
    assert "(hidden)" in message


def test_long_values_are_cut() -> None:
    assert len(shown("x" * 5000)) < 200


def test_details_follow_on_their_own_lines() -> None:
    assert str(SpecError("too dear", remedy="Spend less", details="a  1\nb  2")).splitlines() == [
        "too dear. Spend less.",
        "a  1",
        "b  2",
    ]


def test_closest_ignores_case_and_gives_up_on_the_unlike() -> None:
    assert closest("Lightning.Qubits", ["lightning.qubit", "lightning.gpu"]) == "lightning.qubit"
    assert closest("zzz", ["lightning.qubit"]) is None


def test_suggestion_names_all_when_none_is_close() -> None:
    assert suggestion("zzz", ["dev", "prod"], noun="stage") == "Known stages: dev, prod"
