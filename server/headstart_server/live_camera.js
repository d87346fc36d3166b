"use strict";
// A live camera of `headstart serve`: hears answers, and comes back after a break. It needs nothing but a
// browser. `LiveCamera` sends the pictures itself (docs/live-protocol.md):
//
//   const camera = new LiveCamera("ws://127.0.0.1:8000", key, { stream: "front", window_s: 2, question });
//   camera.onanswer = (answer) => ...;      // also onstarted, onwords, oncompared, oncounts, ontrouble, onover
//   camera.send(jpeg, timeUs);              // an ArrayBuffer, and microseconds that increase
//   camera.sendEncoded(chunk);              // in place of send: started with `codec`, from a VideoEncoder
//   camera.end();
//
// `ServerCamera` has the server read a camera of the network (docs/operation.md):
//
//   const camera = new ServerCamera("http://127.0.0.1:8000", key, { source: "rtsp://...", stream: "front", ... });
//   await camera.picture();                 // a Blob with the newest picture, or null

class HeardCamera {
  constructor() {
    this.number = 0;     // the last answer that has arrived
    this.started = null; // what the server said of the camera
    this.isOver = false;
    this.pauseMs = 200;
    for (const event of ["started", "answer", "words", "compared", "counts", "trouble", "over"])
      this["on" + event] = () => {};
  }

  hear(message) {
    switch (message.type) {
      case "started":
        this.started = message; this.lostMs = 0; this.pauseMs = 200;
        this.needsKey = true; // of encoded video: the server can begin with a key picture only
        return this.onstarted(message);
      case "answer":
        if (message.number <= this.number) return;
        this.number = message.number;
        this.acknowledge(message.number);
        return this.onanswer(message);
      case "compared": return this.oncompared(message);
      case "counts": return this.oncounts(message);
      case "error": return message.is_last ? this.over(message.message) : this.ontrouble(message.message);
      case "ended": return this.over("");
      default: return this.onwords(message); // preview, confirmed, retracted
    }
  }

  over(trouble) {
    if (this.isOver) return;
    this.isOver = true;
    this.close();
    this.onover(trouble);
  }
}

class LiveCamera extends HeardCamera {
  constructor(address, key, start) {
    super();
    this.address = address;
    this.protocols = ["headstart.live.v1"].concat(key ? ["headstart.key." + key] : []);
    this.first = { type: "start", ...start };
    this.lostMs = 0;
    this.connect();
  }

  connect() {
    this.socket = new WebSocket(this.address + "/v1/live", this.protocols);
    this.socket.onopen = () => this.say(
      this.started ? { type: "resume", token: this.started.token, number: this.number } : this.first);
    this.socket.onmessage = (event) => this.hear(JSON.parse(event.data));
    this.socket.onclose = () => this.lost();
  }

  lost() {
    if (this.isOver) return;
    if (!this.started) return this.over("The server refuses. Check its address, the key, and its log.");
    this.lostMs = this.lostMs || Date.now();
    if (Date.now() - this.lostMs > 1000 * this.started.limits.resume_s)
      return this.over("The connection is lost. Start again.");
    setTimeout(() => this.connect(), this.pauseMs);
    this.pauseMs = Math.min(5000, 2 * this.pauseMs);
  }

  say(message) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }

  // Returns whether the picture was sent. On a slow network it is left out rather than sent late.
  send(jpeg, timeUs) { return this.post(1, jpeg, timeUs); }

  // An EncodedVideoChunk, of an encoder that is set to the format "annexb". What builds on a picture that was
  // left out is left out too.
  sendEncoded(chunk) {
    if (this.needsKey && chunk.type !== "key") return false;
    const content = new Uint8Array(chunk.byteLength);
    chunk.copyTo(content);
    this.needsKey = !this.post(2, content, chunk.timestamp);
    return !this.needsKey;
  }

  post(kind, content, timeUs) {
    if (!this.started || this.isOver) return false;
    if (this.socket.readyState !== WebSocket.OPEN || this.socket.bufferedAmount > 1e6) return false;
    const message = new Uint8Array(9 + content.byteLength), view = new DataView(message.buffer);
    view.setUint8(0, kind);
    view.setBigInt64(1, BigInt(Math.round(timeUs)));
    message.set(new Uint8Array(content), 9);
    this.socket.send(message);
    return true;
  }

  acknowledge(number) { this.say({ type: "ack", number }); }

  end() { this.say({ type: "end" }); }

  leave() {} // the socket closes with its page

  close() { this.socket.close(1000); }
}

class ServerCamera extends HeardCamera {
  constructor(address, key, registration) {
    super();
    this.address = address + "/v1/cameras";
    this.headers = key ? { Authorization: `Bearer ${key}` } : {};
    this.register(registration);
  }

  async register(registration) {
    try {
      const headers = { ...this.headers, "Content-Type": "application/json" };
      const reply = await fetch(this.address, { method: "POST", headers, body: JSON.stringify(registration) });
      const said = await reply.json();
      if (!reply.ok) return this.over(said.error.message);
      this.address += "/" + said.id;
      this.hear({ type: "started", ...said });
    } catch {
      return this.over("The server does not answer. See whether it runs.");
    }
    while (!this.isOver) {
      await this.read();
      await new Promise((done) => setTimeout(done, this.pauseMs));
      this.pauseMs = Math.min(5000, 2 * this.pauseMs);
    }
  }

  // Until the connection breaks, or the camera is over.
  async read() {
    try {
      const headers = { ...this.headers, "Last-Event-ID": String(this.number) };
      const reply = await fetch(this.address + "/answers", { headers });
      if (!reply.ok) return reply.status < 500 && this.over((await reply.json()).error.message);
      this.pauseMs = 200;
      const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let text = "", piece; !(piece = await reader.read()).done; ) {
        const events = (text + piece.value).split("\n\n");
        text = events.pop();
        for (const event of events) {
          const data = event.split("\n").find((line) => line.startsWith("data: "));
          if (data) this.hear(JSON.parse(data.slice(6)));
        }
      }
    } catch {} // read again, from the last answer that has arrived
  }

  // One at a time: where they come slowly, fewer are asked for.
  async picture() {
    if (!this.started || this.isOver || this.isLooking) return null;
    this.isLooking = true;
    try {
      const reply = await fetch(this.address + "/picture", { headers: this.headers });
      return reply.ok ? await reply.blob() : null;
    } catch {
      return null;
    } finally {
      this.isLooking = false;
    }
  }

  acknowledge() {}

  async end() {
    try {
      await fetch(this.address, { method: "DELETE", headers: this.headers });
      this.over("");
    } catch {
      this.over("The server does not answer, so it may read on.");
    }
  }

  leave() { // the server reads on without a page, so it is told
    if (this.started && !this.isOver) fetch(this.address, { method: "DELETE", headers: this.headers, keepalive: true });
  }

  close() {}
}

// Words of an answer on their way: certain ones, and drafted ones that may be taken back.
class LiveWords {
  constructor() { this.clear(); }

  clear() { this.certain = this.unsure = ""; }

  hear(message) {
    if (message.type === "preview") this.unsure += message.text;
    if (message.type === "retracted") this.unsure = "";
    if (message.type === "confirmed") {
      this.unsure = this.unsure.startsWith(message.text) ? this.unsure.slice(message.text.length) : "";
      this.certain += message.text;
    }
  }
}
