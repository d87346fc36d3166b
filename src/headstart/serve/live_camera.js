"use strict";
// A live camera of `headstart serve`: sends pictures, hears answers, and comes back after a break.
// docs/live-protocol.md describes what it says. It needs nothing but a browser.
//
//   const camera = new LiveCamera("ws://127.0.0.1:8000", key, { stream: "front", window_s: 2, question });
//   camera.onanswer = (answer) => ...;      // also onstarted, onwords, oncompared, oncounts, ontrouble, onover
//   camera.send(jpeg, timeUs);              // an ArrayBuffer, and microseconds that increase
//   camera.sendEncoded(chunk);              // in place of send: started with `codec`, from a VideoEncoder
//   camera.end();

class LiveCamera {
  constructor(address, key, start) {
    this.address = address;
    this.protocols = ["headstart.live.v1"].concat(key ? ["headstart.key." + key] : []);
    this.first = { type: "start", ...start };
    this.number = 0;     // the last answer that has arrived
    this.started = null; // what the server said of the camera
    this.isOver = false;
    this.needsKey = true; // of encoded video: whether the server can begin with a key picture only
    this.pauseMs = 200;
    this.lostMs = 0;
    for (const event of ["started", "answer", "words", "compared", "counts", "trouble", "over"])
      this["on" + event] = () => {};
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

  end() { this.say({ type: "end" }); }

  hear(message) {
    switch (message.type) {
      case "started":
        this.started = message; this.lostMs = 0; this.pauseMs = 200; this.needsKey = true;
        return this.onstarted(message);
      case "answer":
        if (message.number <= this.number) return;
        this.number = message.number;
        this.say({ type: "ack", number: message.number });
        return this.onanswer(message);
      case "compared": return this.oncompared(message);
      case "counts": return this.oncounts(message);
      case "error": return message.is_last ? this.over(message.message) : this.ontrouble(message.message);
      case "ended": return this.over("");
      default: return this.onwords(message); // preview, confirmed, retracted
    }
  }

  over(trouble) {
    this.isOver = true;
    this.socket.close(1000);
    this.onover(trouble);
  }
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
