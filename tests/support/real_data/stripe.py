"""Events of a payment provider: epochs in seconds, and another object for each type of event."""

from random import Random

from tests.support.real_data.kind import Kind, Record, as_lines, is_one_in, moment, word


def records(seed: int, size: int) -> list[Record]:
    random = Random(seed)
    return [_event(random) for _ in range(size)]


def _event(random: Random) -> Record:
    kind = random.choice(list(OBJECTS))
    data: Record = {"object": OBJECTS[kind](random)}
    if kind.endswith("updated"):
        data["previous_attributes"] = random.choice(
            [
                {"status": "trialing"},
                {"metadata": {"plan": None}},
                {"items": {"data": [{"id": "x"}]}},
            ]
        )
    return {
        "id": _id(random, "evt"),
        "object": "event",
        "api_version": "2024-04-10",
        "created": _seconds(random),
        "data": data,
        "livemode": True,
        "pending_webhooks": random.randrange(3),
        "request": {
            "id": None if is_one_in(random, 3) else _id(random, "req"),
            "idempotency_key": None,
        },
        "type": kind,
    }


def _id(random: Random, start: str) -> str:
    return f"{start}_{word(random, 14)}"


def _seconds(random: Random) -> int:
    return int(moment(random).timestamp())


def _metadata(random: Random) -> Record:
    """Return what a customer has put there: strings under any name."""
    return {
        random.choice(["order_id", "Order_ID", "user id", "plan"]): str(random.randrange(999))
        for _ in range(random.randrange(3))
    }


def _charge(random: Random) -> Record:
    amount = random.randrange(50, 10**6)
    is_paid = not is_one_in(random, 4)
    return {
        "id": _id(random, "ch"),
        "object": "charge",
        "amount": amount,
        "amount_refunded": 0,
        "currency": random.choice(["usd", "eur", "jpy"]),
        "created": _seconds(random),
        "customer": random.choice([None, _id(random, "cus")]),
        "billing_details": {
            "address": {"city": None, "country": "DE", "postal_code": "10115"},
            "email": "ana@example.com",
            "phone": None,
        },
        "failure_code": None if is_paid else "card_declined",
        "fraud_details": {},
        "metadata": _metadata(random),
        "outcome": {"network_status": "approved_by_network", "risk_score": random.randrange(100)},
        "paid": is_paid,
        "payment_method_details": random.choice(
            [
                {"type": "card", "card": {"brand": "visa", "exp_year": 2027, "checks": {}}},
                {"type": "sepa_debit", "sepa_debit": {"last4": "3000", "bank_code": "37040044"}},
            ]
        ),
        "refunds": {"object": "list", "data": [], "has_more": False},
        "status": "succeeded" if is_paid else "failed",
    }


def _customer(random: Random) -> Record:
    return {
        "id": _id(random, "cus"),
        "object": "customer",
        "address": None,
        "balance": random.choice([0, -500]),
        "created": _seconds(random),
        "default_source": None,
        "email": random.choice([None, "b@example.com"]),
        "name": random.choice(["Zo\u00eb", None]),
        "metadata": _metadata(random),
        "preferred_locales": random.choice([[], ["de-DE"]]),
    }


def _invoice(random: Random) -> Record:
    items = [
        {
            "id": _id(random, "il"),
            "amount": random.randrange(10**5),
            "description": "1 \u00d7 Pro",
            "period": {"start": _seconds(random), "end": _seconds(random)},
            "quantity": random.choice([1, None]),
            "price": {"unit_amount": 999, "unit_amount_decimal": random.choice(["999", "999.5"])},
        }
        for _ in range(random.randrange(1, 3))
    ]
    return {
        "id": _id(random, "in"),
        "object": "invoice",
        "amount_due": random.randrange(10**5),
        "customer": _id(random, "cus"),
        "discounts": [],
        "due_date": random.choice([None, _seconds(random)]),
        "lines": {"object": "list", "data": items, "total_count": len(items)},
        "metadata": _metadata(random),
        "tax_percent": random.choice([None, 19, 7.7]),
        "status_transitions": {"finalized_at": _seconds(random), "voided_at": None},
    }


def _subscription(random: Random) -> Record:
    # Expanded on request: an id here, the whole object there.
    customer = _customer(random) if is_one_in(random, 5) else _id(random, "cus")
    return {
        "id": _id(random, "sub"),
        "object": "subscription",
        "customer": customer,
        "items": {"object": "list", "data": [{"id": _id(random, "si"), "quantity": 1}]},
        "cancel_at": None,
        "current_period_end": _seconds(random),
        "metadata": _metadata(random),
        "status": "active",
    }


OBJECTS = {
    "charge.succeeded": _charge,
    "customer.created": _customer,
    "invoice.paid": _invoice,
    "customer.subscription.updated": _subscription,
}

STRIPE = Kind(name="stripe events", records=records, written=as_lines("events.jsonl"))
