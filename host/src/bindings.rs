wasmtime::component::bindgen!({
    path: "../wit",
    inline: "
        package tenon:host;
        world every {
            include tenon:plugin/streaming-provider@0.1.0;
            include tenon:plugin/tool@0.1.0;
            include tenon:plugin/hook@0.1.0;
            include tenon:plugin/eval@0.1.0;
            include tenon:plugin/mcp-bridge@0.1.0;
        }
    ",
    world: "tenon:host/every",
    imports: { default: trappable },
    exports: { default: async | store },
});
