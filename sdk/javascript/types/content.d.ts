/** A content block, made by `text`, `image`, `audio`, `resourceLink` or `embedded`. */
export declare class Content {
  private constructor();
  private readonly body: unknown;
}

/** A whole answer of a tool, made by `toolResult`. */
export declare class ToolResult {
  private constructor();
  private readonly content: unknown;
}

/** Members of a block in MCP beside its content. */
export interface Meta {
  annotations?: { audience?: ("user" | "assistant")[]; priority?: number; lastModified?: string };
  _meta?: Record<string, unknown>;
}

/** Plain text. */
export declare function text(text: string, meta?: Meta): Content;

/**
 * An image.
 *
 * @param data Its bytes, or their Base64.
 * @param mimeType Such as `image/png`.
 * @throws {TypeError} Where the data or the type is none.
 */
export declare function image(data: Uint8Array | ArrayBuffer | string, mimeType: string, meta?: Meta): Content;

/** A sound; as `image`, with a type such as `audio/wav`. */
export declare function audio(data: Uint8Array | ArrayBuffer | string, mimeType: string, meta?: Meta): Content;

/** A pointer to a resource. */
export interface ResourceLink {
  uri: string;
  /** The name that programs use; without one it is the URI. */
  name?: string;
  title?: string;
  description?: string;
  mimeType?: string;
  /** In bytes. */
  size?: number;
}

/** A pointer to a resource that the reader may fetch. */
export declare function resourceLink(link: ResourceLink, meta?: Meta): Content;

/** A resource, carried along. */
export declare function embedded(uri: string, contents: string | Uint8Array, options?: { mimeType?: string; meta?: Meta }): Content;

/** A whole answer of a tool, for what other results do not say: structured content beside other content, or `_meta`. */
export declare function toolResult(result: {
  content?: string | Content | readonly (string | Content)[];
  structured?: object;
  isError?: boolean;
  meta?: Record<string, unknown>;
}): ToolResult;

/** A content block in MCP's form, with bytes as they are: what a plugin reads of others. */
export type Block =
  | { type: "text"; text: string }
  | { type: "image" | "audio"; data: Uint8Array; mimeType: string }
  | { type: "resource_link"; uri: string; name: string; title?: string; description?: string; mimeType?: string; size?: number }
  | { type: "resource"; resource: ResourceContents };

/** A part of what was read from a resource. */
export interface ResourceContents {
  uri: string;
  mimeType?: string;
  text?: string;
  blob?: Uint8Array;
}
