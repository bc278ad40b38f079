/** `Request` and `Response`. */

import { Body } from "./body.js";
import { Headers } from "./headers.js";
import { parse } from "./http-url.js";

const NORMAL = ["DELETE", "GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH"];

export class Request extends Body {
  constructor(input, init = {}) {
    const of = input instanceof Request ? input : undefined;
    const headers = new Headers(init.headers ?? of?.headers);
    const body = init.body ?? (of ? Body.copyOf(of) : undefined);
    const given = String(init.method ?? of?.method ?? "GET");
    const method = NORMAL.find((each) => each === given.toUpperCase()) ?? given;
    if (body !== undefined && body !== null && (method === "GET" || method === "HEAD")) throw new TypeError(`a request with the method ${method} has no body`);
    super(body, headers);
    Object.assign(this, {
      method,
      headers,
      url: of ? of.url : parse(String(input)).href,
      signal: init.signal ?? of?.signal,
      redirect: init.redirect ?? of?.redirect ?? "follow",
    });
  }

  clone() {
    return new Request(this);
  }
}

const NO_BODY = [101, 204, 205, 304];

export class Response extends Body {
  constructor(body, { status = 200, statusText = "", headers, url = "", redirected = false } = {}) {
    const all = new Headers(headers);
    if (body !== null && body !== undefined && NO_BODY.includes(status)) throw new TypeError(`a response with the status ${status} has no body`);
    super(body, all);
    Object.assign(this, { status, statusText, headers: all, url, redirected, type: "default" });
  }

  get ok() {
    return this.status >= 200 && this.status < 300;
  }

  clone() {
    const { status, statusText, headers, url, redirected } = this;
    return new Response(Body.copyOf(this), { status, statusText, headers, url, redirected });
  }

  static json(value, init = {}) {
    const headers = new Headers(init.headers);
    if (!headers.has("content-type")) headers.set("content-type", "application/json");
    return new Response(JSON.stringify(value), { ...init, headers });
  }


  static redirect(url, status = 302) {
    return new Response(null, { status, headers: { location: String(url) } });
  }
}
