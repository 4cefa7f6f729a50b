"""Sets of chats with language models: content as a text or in parts, calls of tools, long texts."""

import json
from random import Random
from typing import Any

from tests.support.real_data.kind import Kind, Record, as_lines, hexadecimal, is_one_in, word

SENTENCES = (
    "The quick brown fox. ",
    "\u0417\u0434\u0440\u0430\u0432\u0441\u0442\u0432\u0443\u0439, \u043c\u0438\u0440! ",
    "\u4f60\u597d\uff0c\u4e16\u754c\u3002",
    '```python\nprint("hi\\n")\n```\n',
    "\U0001f1e9\U0001f1ea e\u0301 \u202eabc\u202c \u0000 ",
)


def records(seed: int, size: int) -> list[Record]:
    random = Random(seed)
    return [_chat(random, number) for number in range(size)]


def _chat(random: Random, number: int) -> Record:
    turns: list[Record] = [{"role": "system", "content": "You are helpful."}]
    for _ in range(random.randrange(1, 4)):
        turns += [{"role": "user", "content": _content(random)}, *_answer(random)]
    chat: Record = {
        "id": random.choice([f"conv_{hexadecimal(random, 12)}", number]),
        "messages": turns,
        "model": f"m-{random.randrange(4)}",
        "temperature": random.choice([0, 0.7, 1]),
        "usage": {"prompt_tokens": random.randrange(9000), "completion_tokens": 31},
        "metadata": random.choice([None, {}, {"source": "synthetic", "split": "train"}]),
        "score": random.choice([None, 5, 4.5, "n/a"]),
    }
    if is_one_in(random, 2):
        chat["tools"] = [_tool(random)]
    if is_one_in(random, 4):
        chat["chosen"], chat["rejected"] = turns[-1:], [{"role": "assistant", "content": ""}]
    return chat


def _text(random: Random) -> str:
    length = 600 if is_one_in(random, 10) else random.randrange(1, 8)
    return "".join(random.choices(SENTENCES, k=length))


def _content(random: Random) -> Any:
    if not is_one_in(random, 4):
        return _text(random)
    image = {"url": "data:image/png;base64,iVBORw0KGgo=", "detail": "low"}
    return [{"type": "text", "text": _text(random)}, {"type": "image_url", "image_url": image}]


def _answer(random: Random) -> list[Record]:
    if not is_one_in(random, 3):
        return [{"role": "assistant", "content": _text(random)}]
    call = f"call_{word(random, 10)}"
    asked = json.dumps({"city": "K\u00f6ln", "days": 3})
    function = {"name": "weather", "arguments": asked}
    return [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": call, "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": call, "content": '{"temp": 21.5}', "name": "weather"},
        {"role": "assistant", "content": _text(random), "refusal": None},
    ]


def _tool(random: Random) -> Record:
    """Return a tool with a JSON schema, in which names are data and `type` and `enum` vary."""
    properties: Record = {
        word(random, 5): {"type": "string", "enum": ["a", "b"]},
        "days": {"type": random.choice(["integer", ["integer", "null"]]), "default": 3},
        "unit": {"type": "string", "default": "C"},
    }
    parameters = {"type": "object", "properties": properties, "required": ["days"]}
    return {"type": "function", "function": {"name": "weather", "parameters": parameters}}


CHATS = Kind(
    name="llm chats",
    records=records,
    written=as_lines("train-00000-of-00002.jsonl", "train-00001-of-00002.jsonl"),
)
