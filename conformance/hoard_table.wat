;; A plugin that grows a table, which no Rust guest can: by a thousand elements for each byte of its
;; arguments. It is the core of a component of the world `tool`: what it answers lies in its memory as
;; the canonical ABI has it, and its build script makes the component.

(module
  (table $hoard 0 funcref)
  (memory (export "memory") 1)
  ;; Where the next argument is put. Calls do not overlap, and each leaves the room to the next.
  (global $free (mut i32) (i32.const 0x1000))

  (data (i32.const 0x100) "hoard-table")
  (data (i32.const 0x110) "0.1.0")
  (data (i32.const 0x120) "Grows a table by bytes")
  (data (i32.const 0x140) "echo")
  (data (i32.const 0x150) "hoard_table")
  (data (i32.const 0x160) "{\"type\":\"object\"}")
  (data (i32.const 0x180) "fine")
  (data (i32.const 0x190) "Says that it is fine")

  ;; Two tool definitions. Where a row is a text or a list, it has an address and a length; what is
  ;; absent is zero.
  (data (i32.const 0x200)
    (i32 0x140 4)    ;; name
    (i32 0 0 0)      ;; title
    (i32 0x190 20)   ;; description
    (i32 0x160 17)   ;; input-schema
    (i32 0 0 0)      ;; output-schema
    (i32 0 0)        ;; annotations
    (i32 0 0)        ;; capabilities
    (i32 0 0 0)      ;; extra

    (i32 0x150 11)
    (i32 0 0 0)
    (i32 0x120 22)
    (i32 0x160 17)
    (i32 0 0 0)
    (i32 0 0)
    (i32 0 0)
    (i32 0 0 0))

  ;; result<identity, error>
  (data (i32.const 0x300)
    (i32 0 0)        ;; ok
    (i32 0x100 11)   ;; name
    (i32 0x110 5)    ;; version
    (i32 0x120 22)   ;; description
    (i32 0 0 0))     ;; extra

  ;; result<list<tool-definition>, error>
  (data (i32.const 0x340)
    (i32 0 0)        ;; ok
    (i32 0x200 2))   ;; tools

  ;; A block of content.
  (data (i32.const 0x400)
    (i32 0 0)        ;; text
    (i32 0x180 4))

  ;; result<tool-result, error>
  (data (i32.const 0x500)
    (i32 0 0)        ;; ok
    (i32 0x400 1)    ;; content
    (i32 0 0 0)      ;; structured
    (i32 0)          ;; is-error
    (i32 0 0 0))     ;; extra

  (func (export "cabi_realloc") (param i32 i32) (param $align i32) (param $size i32) (result i32)
    (local $at i32)
    (local.set $at
      (i32.and
        (i32.sub (i32.add (global.get $free) (local.get $align)) (i32.const 1))
        (i32.sub (i32.const 0) (local.get $align))))
    (global.set $free (i32.add (local.get $at) (local.get $size)))
    (local.get $at))

  (func (export "tenon:plugin/lifecycle@0.2.0#start") (result i32)
    (i32.const 0x300))

  (func (export "tenon:plugin/lifecycle@0.2.0#stop"))

  (func (export "tenon:plugin/tools@0.2.0#list-tools") (result i32)
    (i32.const 0x340))

  ;; The arguments begin with the name of the tool. Its length says which of the two it is.
  (func (export "tenon:plugin/tools@0.2.0#call-tool") (param $arguments i32) (result i32)
    (global.set $free (i32.const 0x1000))
    (if (i32.eq (i32.load offset=4 (local.get $arguments)) (i32.const 11))
      (then (call $hoard (i32.load offset=12 (local.get $arguments)))))
    (i32.const 0x500))

  ;; A table that cannot be grown any more breaks the call off.
  (func $hoard (param $left i32)
    (loop $again
      (if (i32.lt_s (table.grow $hoard (ref.null func) (i32.const 1000)) (i32.const 0))
        (then unreachable))
      (local.set $left (i32.sub (local.get $left) (i32.const 1)))
      (br_if $again (local.get $left)))))
