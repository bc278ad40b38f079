;; A plugin by hand: a component with three tools, in the text form of WebAssembly.
;;
;;     wasm-tools parse subject.wat -o subject.wasm
;;
;; It shows what the tools for languages generate: a core module that works on bytes, the types of
;; the package, and the canonical ABI that leads from one to the other.
(component

  ;; ---- The core module -------------------------------------------------------------------------
  ;;
  ;; The canonical ABI says how values lie in memory: a string or list is its address and length,
  ;; an option or variant a byte that says which case it is and then the payload, and everything
  ;; begins at a multiple of its alignment. All numbers are little-endian.

  (core module $code
    (memory (export "memory") 1)

    ;; What `start` and `list-tools` return does not change, so it is written down here.
    (data (i32.const 0x000)
      (i32 0 0)                                     ;; ok; the payload is aligned to 8
      (i32 0x200 7) (i32 0x210 5) (i32 0x220 25)    ;; identity: name, version, description
      (i32 0 0 0))                                  ;; extra: none
    (data (i32.const 0x040)
      (i32 0 0)                                     ;; ok
      (i32 0x080 3))                                ;; the tools, address and length
    (data (i32.const 0x080)                         ;; the first tool, 76 bytes
      (i32 0x240 4) (i32 0 0 0) (i32 0x250 24)      ;; name; title: none; description
      (i32 0x2c0 57) (i32 0 0 0)                    ;; input-schema; output-schema: none
      (i8 0 0) (i8 0 0) (i8 0 0) (i8 0 0)           ;; annotations: none
      (i32 0 0) (i32 0 0 0))                        ;; no capabilities; extra: none
    (data (i32.const 0x0cc)                         ;; the second
      (i32 0x244 4) (i32 0 0 0) (i32 0x270 34)
      (i32 0x2c0 57) (i32 0 0 0)
      (i8 0 0) (i8 0 0) (i8 0 0) (i8 0 0)
      (i32 0 0) (i32 0 0 0))
    (data (i32.const 0x118)                         ;; the third
      (i32 0x248 4) (i32 0 0 0) (i32 0x2a0 14)
      (i32 0x2c0 57) (i32 0 0 0)
      (i8 0 0) (i8 0 0) (i8 0 0) (i8 0 0)
      (i32 0 0) (i32 0 0 0))

    (data (i32.const 0x200) "subject")
    (data (i32.const 0x210) "0.1.0")
    (data (i32.const 0x220) "Three tools made by hand.")
    (data (i32.const 0x240) "echo" "fail" "hang")
    (data (i32.const 0x250) "Answers with its `text`.")
    (data (i32.const 0x270) "Answers with an error, the `text`.")
    (data (i32.const 0x2a0) "Never answers.")
    (data (i32.const 0x2c0)
      "{\22type\22:\22object\22,\22properties\22:{\22text\22:{\22type\22:\22string\22}}}")
    (data (i32.const 0x300) "there is no such tool")

    ;; Where the next allocation goes. The host puts what it passes there, through `realloc`, and so
    ;; do we with what we return. Nothing is freed: an instance serves one call.
    (global $free (mut i32) (i32.const 0x400))

    (func $realloc (export "realloc")
      (param $old i32) (param $old-size i32) (param $align i32) (param $size i32) (result i32)
      (local $new i32)
      ;; new = free, rounded up to the alignment, which is a power of two
      (local.set $new (i32.and
        (i32.add (global.get $free) (i32.sub (local.get $align) (i32.const 1)))
        (i32.sub (i32.const 0) (local.get $align))))
      (global.set $free (i32.add (local.get $new) (local.get $size)))
      ;; one page after another, until it fits
      (block $fits (loop $more
        (br_if $fits (i32.le_u (global.get $free) (i32.shl (memory.size) (i32.const 16))))
        (br_if $more (i32.ne (memory.grow (i32.const 1)) (i32.const -1)))
        (unreachable)))
      (memory.copy (local.get $new) (local.get $old) (local.get $old-size))
      (local.get $new))

    ;; start: func() -> result<identity, error>
    (func (export "start") (result i32) (i32.const 0x000))

    ;; stop: func()
    (func (export "stop"))

    ;; list-tools: func() -> result<list<tool-definition>, error>
    (func (export "list-tools") (result i32) (i32.const 0x040))

    ;; call-tool: func(name: string, arguments: json, context: call-context)
    ;;     -> result<tool-result, error>
    ;;
    ;; That is more than 16 plain values, so that all arguments lie at one address: the name at 0
    ;; and the arguments at 8.
    (func (export "call-tool") (param $params i32) (result i32)
      (local $name i32)
      ;; All names have four bytes, and so they compare as numbers.
      (if (i32.ne (i32.load offset=4 (local.get $params)) (i32.const 4))
        (then (return (call $not-found))))
      (local.set $name (i32.load (i32.load (local.get $params))))
      (if (i32.eq (local.get $name) (i32.load (i32.const 0x248)))
        (then (loop $ever (br $ever))))
      (if (i32.eq (local.get $name) (i32.load (i32.const 0x240)))
        (then (return (call $answer (local.get $params) (i32.const 0)))))
      (if (i32.eq (local.get $name) (i32.load (i32.const 0x244)))
        (then (return (call $answer (local.get $params) (i32.const 1)))))
      (call $not-found))

    ;; `ok(tool-result)` with one block: the text that came in the arguments.
    (func $answer (param $params i32) (param $is-error i32) (result i32)
      (local $result i32) (local $block i32)
      ;; Fresh memory is zero: that is `ok`, `none`, `false` and the first case of a variant.
      (local.set $block (call $realloc (i32.const 0) (i32.const 0) (i32.const 8) (i32.const 96)))
      (i64.store offset=8 align=4 (local.get $block)                       ;; body: text(…)
        (call $text
          (i32.load offset=8 (local.get $params)) (i32.load offset=12 (local.get $params))))
      (local.set $result (call $realloc (i32.const 0) (i32.const 0) (i32.const 8) (i32.const 56)))
      (i32.store offset=8 (local.get $result) (local.get $block))          ;; content, its address
      (i32.store offset=12 (local.get $result) (i32.const 1))              ;; … and its length
      (i32.store8 offset=28 (local.get $result) (local.get $is-error))
      (local.get $result))

    ;; What stands between the quotes of `{"text":"…"}`, which is how the host writes it. Of escapes
    ;; only those of a character and of the line end are read. Address and length are one number.
    (func $text (param $from i32) (param $size i32) (result i64)
      (local $start i32) (local $to i32) (local $end i32) (local $byte i32)
      (local.set $start (call $realloc
        (i32.const 0) (i32.const 0) (i32.const 1) (local.get $size)))
      (local.set $to (local.get $start))
      (local.set $end (i32.sub (i32.add (local.get $from) (local.get $size)) (i32.const 2)))
      (local.set $from (i32.add (local.get $from) (i32.const 9)))
      (block $done (loop $next
        (br_if $done (i32.ge_u (local.get $from) (local.get $end)))
        (local.set $byte (i32.load8_u (local.get $from)))
        (if (i32.eq (local.get $byte) (i32.const 0x5c)) (then              ;; a backslash
          (local.set $from (i32.add (local.get $from) (i32.const 1)))
          (local.set $byte (i32.load8_u (local.get $from)))
          (if (i32.eq (local.get $byte) (i32.const 0x6e))                  ;; n
            (then (local.set $byte (i32.const 0x0a))))))
        (i32.store8 (local.get $to) (local.get $byte))
        (local.set $from (i32.add (local.get $from) (i32.const 1)))
        (local.set $to (i32.add (local.get $to) (i32.const 1)))
        (br $next)))
      (i64.or
        (i64.extend_i32_u (local.get $start))
        (i64.shl
          (i64.extend_i32_u (i32.sub (local.get $to) (local.get $start)))
          (i64.const 32))))

    ;; `err(…)` with the code `not-found` and a message
    (func $not-found (result i32)
      (local $result i32)
      (local.set $result (call $realloc (i32.const 0) (i32.const 0) (i32.const 8) (i32.const 56)))
      (i32.store8 (local.get $result) (i32.const 1))                       ;; err
      (i32.store8 offset=8 (local.get $result) (i32.const 1))              ;; not-found
      (i32.store offset=12 (local.get $result) (i32.const 0x300))
      (i32.store offset=16 (local.get $result) (i32.const 21))
      (local.get $result)))

  (core instance $core (instantiate $code))
  (alias core export $core "memory" (core memory $memory))
  (alias core export $core "realloc" (core func $realloc))

  ;; ---- The types that functions of the world name ----------------------------------------------
  ;;
  ;; Records and variants that leave a component need names. Those of `types` have theirs from an
  ;; import: an instance without functions, which asks nothing of the host.

  (import "tenon:plugin/types@0.2.0" (instance $types
    (type $text? (option string))
    (type $size? (option u64))
    (type $bool? (option bool))
    (type $texts (list string))
    (type $bytes (list u8))

    (type $error-code' (enum
      "invalid-input" "not-found" "denied" "timeout" "cancelled" "unavailable" "failed"))
    (export "error-code" (type $error-code (eq $error-code')))
    (type $error' (record
      (field "code" $error-code) (field "message" string) (field "retry-after" $size?)
      (field "data" $text?)))
    (export "error" (type $error (eq $error')))

    (type $call-context' (record
      (field "call-id" string) (field "agent-id" $text?) (field "session-id" $text?)
      (field "traceparent" $text?) (field "time-left" $size?) (field "extra" $text?)))
    (export "call-context" (type $call-context (eq $call-context')))

    (type $media' (record (field "data" $bytes) (field "mime-type" string)))
    (export "media" (type $media (eq $media')))
    (type $resource-link' (record
      (field "uri" string) (field "name" string) (field "title" $text?) (field "description" $text?)
      (field "mime-type" $text?) (field "size" $size?)))
    (export "resource-link" (type $resource-link (eq $resource-link')))
    (type $resource-body' (variant (case "text" string) (case "blob" $bytes)))
    (export "resource-body" (type $resource-body (eq $resource-body')))
    (type $resource-contents' (record
      (field "uri" string) (field "mime-type" $text?) (field "body" $resource-body)
      (field "extra" $text?)))
    (export "resource-contents" (type $resource-contents (eq $resource-contents')))
    (type $content' (variant
      (case "text" string) (case "image" $media) (case "audio" $media)
      (case "resource-link" $resource-link) (case "resource" $resource-contents)
      (case "other" string)))
    (export "content" (type $content (eq $content')))
    (type $content-block' (record (field "body" $content) (field "extra" $text?)))
    (export "content-block" (type $content-block (eq $content-block')))

    (type $annotations' (record
      (field "read-only" $bool?) (field "destructive" $bool?) (field "idempotent" $bool?)
      (field "open-world" $bool?)))
    (export "tool-annotations" (type $annotations (eq $annotations')))
    (type $tool-definition' (record
      (field "name" string) (field "title" $text?) (field "description" string)
      (field "input-schema" string) (field "output-schema" $text?)
      (field "annotations" $annotations) (field "capabilities" $texts) (field "extra" $text?)))
    (export "tool-definition" (type $tool-definition (eq $tool-definition')))
    (type $blocks (list $content-block))
    (type $tool-result' (record
      (field "content" $blocks) (field "structured" $text?) (field "is-error" bool)
      (field "extra" $text?)))
    (export "tool-result" (type $tool-result (eq $tool-result')))))

  (type $json string)
  (alias export $types "error" (type $error))
  (alias export $types "call-context" (type $call-context))
  (alias export $types "tool-definition" (type $tool-definition))
  (alias export $types "tool-result" (type $tool-result))

  ;; ---- The exports -----------------------------------------------------------------------------
  ;;
  ;; `canon lift` makes a function of the component from one of the core module. It says where the
  ;; bytes are, and with what the host allocates what it passes. These are lifted synchronously: the
  ;; sync edition of the package, which every host takes.
  ;;
  ;; An interface is an instance of its functions, of its own types and of those that it uses.

  (type $identity (record
    (field "name" string) (field "version" string) (field "description" string)
    (field "extra" (option string))))

  (func $start (result (result $identity (error $error)))
    (canon lift (core func $core "start") (memory $memory)))
  (func $stop
    (canon lift (core func $core "stop")))
  (instance $lifecycle
    (export "json" (type $json))
    (export "error" (type $error))
    (export "identity" (type $identity))
    (export "start" (func $start))
    (export "stop" (func $stop)))
  (export "tenon:plugin/lifecycle@0.2.0" (instance $lifecycle))

  (func $list-tools (result (result (list $tool-definition) (error $error)))
    (canon lift (core func $core "list-tools") (memory $memory)))
  (func $call-tool
    (param "name" string) (param "arguments" string) (param "context" $call-context)
    (result (result $tool-result (error $error)))
    (canon lift (core func $core "call-tool") (memory $memory) (realloc $realloc)))
  (instance $tools
    (export "json" (type $json))
    (export "error" (type $error))
    (export "call-context" (type $call-context))
    (export "tool-definition" (type $tool-definition))
    (export "tool-result" (type $tool-result))
    (export "list-tools" (func $list-tools))
    (export "call-tool" (func $call-tool)))
  (export "tenon:plugin/tools@0.2.0" (instance $tools)))
