"""Tweets of version 1.1 of the API: ids twice, times as in e-mail, and tweets within tweets."""

from random import Random

from tests.support.real_data.kind import Kind, Record, as_lines, is_one_in, moment, word

TEXTS = (
    "RT @someone: caf\u00e9 \u2615 https://t.co/abc",
    "\u05e9\u05dc\u05d5\u05dd \u200f#data",
    "\U0001f469\u200d\U0001f4bb &amp; co\nsecond line",
)


def records(seed: int, size: int) -> list[Record]:
    random = Random(seed)
    return [_tweet(random, depth=0) for _ in range(size)]


def _tweet(random: Random, *, depth: int) -> Record:
    number = random.randrange(10**18, 2 * 10**18)
    answered = random.randrange(10**18, 2 * 10**18) if is_one_in(random, 4) else None
    text = random.choice(TEXTS)
    tweet: Record = {
        "created_at": f"{moment(random):%a %b %d %H:%M:%S +0000 %Y}",
        "id": number,
        "id_str": str(number),
        "text": text,
        "source": '<a href="http://twitter.com" rel="nofollow">Twitter Web Client</a>',
        "truncated": is_one_in(random, 5),
        "in_reply_to_status_id": answered,
        "in_reply_to_status_id_str": None if answered is None else str(answered),
        "user": _user(random),
        "geo": None,
        "coordinates": _point(random) if is_one_in(random, 3) else None,
        "contributors": None,
        "is_quote_status": False,
        "retweet_count": random.randrange(10**4),
        "favorite_count": random.choice([0, 12, None]),
        "favorited": False,
        "retweeted": False,
        "filter_level": "low",
        "lang": random.choice(["en", "he", "und"]),
        "timestamp_ms": str(int(moment(random).timestamp() * 1000)),
    }
    if not is_one_in(random, 3):
        tweet["possibly_sensitive"] = is_one_in(random, 9)
    if tweet["truncated"]:
        tweet["extended_tweet"] = {
            "full_text": text * 3,
            "display_text_range": [0, random.randrange(280)],
        }
    if depth < 1 and is_one_in(random, 3):
        tweet["retweeted_status"] = _tweet(random, depth=depth + 1)
    return tweet


def _user(random: Random) -> Record:
    number = random.randrange(10, 10**18)
    return {
        "id": number,
        "id_str": str(number),
        "name": f"{word(random, 5).title()} \U0001f427",
        "screen_name": word(random, 9),
        "location": random.choice([None, "", "Berlin"]),
        "url": random.choice([None, "https://t.co/x"]),
        "description": random.choice([None, "data\u2028engineer"]),
        "protected": False,
        "followers_count": random.randrange(10**6),
        "created_at": f"{moment(random):%a %b %d %H:%M:%S +0000 %Y}",
        "utc_offset": None,
        "time_zone": None,
        "profile_background_color": "F5F8FA",
        "following": None,
    }


def _degree(random: Random) -> float | int:
    """Return a coordinate; one that is whole is written as an integer."""
    return random.choice([random.randrange(-90, 90), random.randrange(-9_000_000, 9_000_000) / 1e5])


def _point(random: Random) -> Record:
    return {"type": "Point", "coordinates": [_degree(random), _degree(random)]}


TWEETS = Kind(name="tweets", records=records, written=as_lines("stream.jsonl", "stream2.jsonl"))
