// The text of an event stream, cut into events. Pure.

/** Return a function that takes pieces of text and gives the events that they complete. */
export function events() {
  let rest = "";
  return (piece) => {
    rest += piece;
    const found = [];
    for (;;) {
      const end = /\r?\n\r?\n/.exec(rest);
      if (end === null) return found;
      const event = one(rest.slice(0, end.index));
      rest = rest.slice(end.index + end[0].length);
      if (event !== null) found.push(event);
    }
  };
}

function one(block) {
  let name = "message";
  const data = [];
  for (const line of block.split(/\r?\n/)) {
    if (line.startsWith("event:")) name = line.slice(6).trim();
    else if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
  }
  return data.length ? { name, data: data.join("\n") } : null; // A comment is a heartbeat alone.
}
