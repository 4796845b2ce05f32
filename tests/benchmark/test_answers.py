"""Asking an OpenAI-compatible endpoint, and scoring."""

from __future__ import annotations

import json

import httpx
import pytest

from benchmark.answers import Answer, AnsweringModel, Scored, is_correct, open_client, summarise


def endpoint(answer: str, *, usage: bool = True) -> httpx.AsyncClient:
    """A stand-in for a model server: it lists one model and gives the same answer to everything."""

    def handle(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/v1/models":
            return httpx.Response(200, json={"object": "list", "data": [{"id": "served-name"}]})
        body = json.loads(request.content)
        assert body["temperature"] == 0
        counted = {"usage": {"prompt_tokens": len(body["messages"][1]["content"].split())}} if usage else {}
        return httpx.Response(200, json={"choices": [{"message": {"content": answer}}], **counted})

    return httpx.AsyncClient(base_url="http://model.test/v1/", transport=httpx.MockTransport(handle))


async def test_the_first_listed_model_answers_and_its_usage_is_counted() -> None:
    async with endpoint("10.0.0.7") as client:
        model = await AnsweringModel.connect(client, None)
        answer = await model.answer("address: 10.0.0.7", "which address?")

    assert model.model == "served-name"
    assert answer.text == "10.0.0.7"
    assert answer.input_tokens == 6


async def test_thinking_is_not_part_of_the_answer() -> None:
    async with endpoint("<think>is it\n50501?</think>\n50502") as client:
        answer = await (await AnsweringModel.connect(client, "m")).answer("port 50502", "which port?")

    assert answer.text == "50502"


async def test_a_refusal_is_an_error_and_not_a_wrong_answer() -> None:
    transport = httpx.MockTransport(lambda request: httpx.Response(429))
    async with httpx.AsyncClient(base_url="http://model.test/v1/", transport=transport) as client:
        model = AnsweringModel(client, "m")

        with pytest.raises(httpx.HTTPStatusError):
            await model.answer("material", "question")


async def test_a_key_goes_out_as_bearer_and_the_base_url_keeps_its_path() -> None:
    async with open_client("http://model.test/v1", "key") as client:
        request = client.build_request("POST", "chat/completions")

    assert str(request.url) == "http://model.test/v1/chat/completions"
    assert request.headers["authorization"] == "Bearer key"


@pytest.mark.parametrize(
    ("answer", "correct"),
    [("Marta  Oyelaran.", True), ("marta oyelaran", True), ("Marta", False), ("It is Marta Oyelaran", False), ("", False)],
)
def test_scoring_evens_out_white_space_case_and_terminal_punctuation_only(answer: str, correct: bool) -> None:
    assert is_correct(answer, "Marta Oyelaran") is correct


def test_tokens_are_absent_where_the_endpoint_counts_none() -> None:
    counted = [Scored("a", Answer("x", 10, 5.0), True), Scored("b", Answer("y", 12, 7.0), False)]
    uncounted = [*counted, Scored("c", Answer("z", None, 6.0), True)]

    assert summarise(counted, seed=1)["input_tokens"] == 22
    assert "input_tokens" not in summarise(uncounted, seed=1)
    assert summarise(uncounted, seed=1)["correct"] == 2
    assert summarise(uncounted, seed=1)["wrong"] == {"b": "y"}
