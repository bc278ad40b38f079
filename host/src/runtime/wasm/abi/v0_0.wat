;; A plugin of tenon:plugin@0.0.1: `echo` logs its arguments and answers with them.
(component
  (import "tenon:plugin/log@0.0.1" (instance $log
    (export "write" (func (param "message" string)))))

  (core module $memory
    (memory (export "memory") 1)
    (global $free (mut i32) (i32.const 0x400))
    (func (export "realloc")
      (param $old i32) (param $old-size i32) (param $align i32) (param $size i32) (result i32)
      (local $new i32)
      (local.set $new (i32.and (i32.add (global.get $free) (i32.const 7)) (i32.const -8)))
      (global.set $free (i32.add (local.get $new) (local.get $size)))
      (local.get $new)))
  (core instance $memory (instantiate $memory))
  (alias core export $memory "memory" (core memory $mem))
  (alias core export $memory "realloc" (core func $realloc))
  (core func $write (canon lower (func $log "write") (memory $mem)))

  (core module $code
    (import "memory" "memory" (memory 1))
    (import "log" "write" (func $write (param i32 i32)))
    ;; list-tools: one tool, its name and its description
    (data (i32.const 0x00) "\08\00\00\00\01\00\00\00" "\20\00\00\00\04\00\00\00" "\30\00\00\00\06\00\00\00")
    (data (i32.const 0x20) "echo")
    (data (i32.const 0x30) "Echoes")
    (func (export "list-tools") (result i32) (i32.const 0))
    ;; call-tool: `ok` at 0x100, then address and length of the arguments
    (func (export "start"))
    (func (export "call-tool") (param i32 i32) (param $text i32) (param $size i32) (result i32)
      (call $write (local.get $text) (local.get $size))
      (i32.store8 (i32.const 0x100) (i32.const 0))
      (i32.store (i32.const 0x104) (local.get $text))
      (i32.store (i32.const 0x108) (local.get $size))
      (i32.const 0x100)))
  (core instance $host (export "write" (func $write)))
  (core instance $code (instantiate $code
    (with "memory" (instance $memory))
    (with "log" (instance $host))))

  (func $start (canon lift (core func $code "start")))
  (func $list (result (list (tuple string string)))
    (canon lift (core func $code "list-tools") (memory $mem)))
  (func $call (param "name" string) (param "arguments" string) (result (result string (error string)))
    (canon lift (core func $code "call-tool") (memory $mem) (realloc $realloc)))
  (instance $lifecycle (export "start" (func $start)))
  (export "tenon:plugin/lifecycle@0.0.1" (instance $lifecycle))
  (instance $tools (export "list-tools" (func $list)) (export "call-tool" (func $call)))
  (export "tenon:plugin/tools@0.0.1" (instance $tools)))
