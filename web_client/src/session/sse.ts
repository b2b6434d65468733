/** Splits a `text/event-stream` into the data of its events. Pure; fed with text as it comes. */
export class EventLines {
  #rest = "";
  #data: string[] = [];
  #startOfStream = true;

  /** @returns the data of every event that `text` completes; comments and other fields count for nothing. */
  push(text: string): string[] {
    let buffer = this.#rest + text;
    if (this.#startOfStream && buffer.length > 0) {
      this.#startOfStream = false;
      if (buffer.startsWith("\uFEFF")) buffer = buffer.slice(1);
    }
    // A lone CR at the end may be half of a CRLF.
    const held = buffer.endsWith("\r") ? "\r" : "";
    const lines = buffer.slice(0, buffer.length - held.length).split(/\r\n|\n|\r/);
    this.#rest = (lines.pop() ?? "") + held;
    const events: string[] = [];
    for (const line of lines) {
      if (line === "") {
        if (this.#data.length > 0) events.push(this.#data.join("\n"));
        this.#data = [];
      } else if (line.startsWith("data:")) {
        this.#data.push(line.slice(line.startsWith("data: ") ? 6 : 5));
      }
    }
    return events;
  }
}
