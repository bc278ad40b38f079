// A plugin in C that has what the conformance suite of MCP asks a server for, under the names that the suite knows.
//
// `wit-bindgen c` makes `component.h` from the WIT. Functions that the world imports begin with the name of their
// package. Those that it exports begin with `exports_`, and are defined here. Where WIT says `result`, a function fills
// in `ret` and returns true, or fills in `err` and returns false. An option that an initializer leaves out is absent.
//
// The generated code frees what an export returns: all of it is on the heap, and no part of it is shared. Nothing else
// is freed here, as each call has a new instance, whose memory ends with it. A plugin with shared instances has to free
// its arguments and what imports return, by the functions whose names end in `_free` and `_drop_own`.

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "component.h"

typedef component_string_t string_t;
typedef component_option_string_t option_string_t;
typedef component_list_u8_t bytes_t;
typedef component_list_tuple2_string_string_t pairs_t;
typedef tenon_plugin_types_call_context_t context_t;
typedef tenon_plugin_types_content_block_t block_t;
typedef tenon_plugin_types_list_content_block_t blocks_t;
typedef tenon_plugin_types_error_t error_t;
typedef tenon_plugin_types_media_t media_t;
typedef tenon_plugin_types_resource_body_t body_t;
typedef tenon_plugin_types_resource_contents_t contents_t;
typedef tenon_plugin_types_tool_result_t result_t;

enum {
    INVALID_INPUT = TENON_PLUGIN_TYPES_ERROR_CODE_INVALID_INPUT,
    NOT_FOUND = TENON_PLUGIN_TYPES_ERROR_CODE_NOT_FOUND,
    DENIED = TENON_PLUGIN_TYPES_ERROR_CODE_DENIED,
    FAILED = TENON_PLUGIN_TYPES_ERROR_CODE_FAILED,
};

static const uint8_t PNG[] = {
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48,
    0x44, 0x52, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x08, 0x06, 0x00, 0x00,
    0x00, 0x1f, 0x15, 0xc4, 0x89, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x44, 0x41, 0x54, 0x78,
    0xda, 0x63, 0xfc, 0xcf, 0xc0, 0xf0, 0x1f, 0x00, 0x05, 0x05, 0x02, 0x00, 0x5f, 0xc8,
    0xf1, 0xd2, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82,
};

static const uint8_t WAV[] = {
    0x52, 0x49, 0x46, 0x46, 0x26, 0x00, 0x00, 0x00, 0x57, 0x41, 0x56, 0x45, 0x66, 0x6d, 0x74,
    0x20, 0x10, 0x00, 0x00, 0x00, 0x01, 0x00, 0x01, 0x00, 0x40, 0x1f, 0x00, 0x00, 0x00, 0x7d,
    0x00, 0x00, 0x02, 0x00, 0x10, 0x00, 0x64, 0x61, 0x74, 0x61, 0x02, 0x00, 0x00, 0x00,
};

// The URI of the resource that changes.
static const char WATCHED[] = "test://watched-resource";

// Memory

static void *allocate(size_t size) {
    void *memory = malloc(size ? size : 1);
    if (!memory) abort();
    return memory;
}

static void *copy_bytes(const void *from, size_t size) {
    return memcpy(allocate(size), from, size);
}

// A list of any type, on the heap, with these items.
#define LIST(item_t, ...)                                                  \
    {copy_bytes((item_t[]){__VA_ARGS__}, sizeof((item_t[]){__VA_ARGS__})), \
     sizeof((item_t[]){__VA_ARGS__}) / sizeof(item_t)}

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

// Strings, which do not end in a NUL

// What the format `%.*s` takes.
#define STRING(string) (int)(string).len, (const char *)(string).ptr

// A string for an import, which only reads it.
static string_t borrow(const char *text) { return (string_t){(uint8_t *)text, strlen(text)}; }

static string_t copy(const char *text) {
    return (string_t){copy_bytes(text, strlen(text)), strlen(text)};
}

static option_string_t some(const char *text) { return (option_string_t){true, copy(text)}; }

__attribute__((format(printf, 1, 2))) static string_t format(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char *text;
    int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (length < 0) abort();
    return (string_t){(uint8_t *)text, length};
}

static bool equals(string_t string, const char *text) {
    return string.len == strlen(text) && memcmp(string.ptr, text, string.len) == 0;
}

static bool starts_with(string_t string, string_t start) {
    return string.len >= start.len && memcmp(string.ptr, start.ptr, start.len) == 0;
}

// Errors

static bool fail(error_t *err, tenon_plugin_types_error_code_t code, string_t message) {
    *err = (error_t){.code = code, .message = message};
    return false;
}

// Refuses a cursor: every listing has one page.
static bool is_first_page(const string_t *cursor, error_t *err) {
    if (!cursor) return true;
    return fail(err, INVALID_INPUT, format("there is no page \"%.*s\"", STRING(*cursor)));
}

// JSON. The host passes only what is valid, so the reader looks for no mistakes.

typedef struct {
    const uint8_t *at, *end;
} reader_t;

static reader_t reader(string_t json) { return (reader_t){json.ptr, json.ptr + json.len}; }

// Skips white space, and this character if it is next.
static bool take(reader_t *json, char character) {
    while (json->at < json->end && strchr(" \t\r\n", *json->at)) json->at++;
    if (json->at == json->end || *json->at != character) return false;
    json->at++;
    return true;
}

static unsigned read_hex(reader_t *json) {
    char digits[5] = {0};
    for (int i = 0; i < 4 && json->at < json->end; i++) digits[i] = *json->at++;
    return strtoul(digits, NULL, 16);
}

// The code point of an escape that begins with `\u`. Half of a surrogate pair is none, and is replaced.
static unsigned read_code_point(reader_t *json) {
    unsigned code = read_hex(json);
    if (code < 0xd800 || code > 0xdfff) return code;
    bool is_pair = code < 0xdc00 && json->end - json->at >= 6 && memcmp(json->at, "\\u", 2) == 0;
    if (!is_pair) return 0xfffd;
    reader_t next = {json->at + 2, json->end};
    unsigned low = read_hex(&next);
    if (low < 0xdc00 || low > 0xdfff) return 0xfffd;
    *json = next;
    return 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
}

static void append_utf8(string_t *string, unsigned code) {
    uint8_t *end = string->ptr + string->len;
    if (code < 0x80) {
        *end++ = code;
    } else if (code < 0x800) {
        *end++ = 0xc0 | code >> 6;
        *end++ = 0x80 | (code & 0x3f);
    } else if (code < 0x10000) {
        *end++ = 0xe0 | code >> 12;
        *end++ = 0x80 | (code >> 6 & 0x3f);
        *end++ = 0x80 | (code & 0x3f);
    } else {
        *end++ = 0xf0 | code >> 18;
        *end++ = 0x80 | (code >> 12 & 0x3f);
        *end++ = 0x80 | (code >> 6 & 0x3f);
        *end++ = 0x80 | (code & 0x3f);
    }
    string->len = end - string->ptr;
}

// Reads a text if it is next.
static bool read_text(reader_t *json, string_t *text) {
    if (!take(json, '"')) return false;
    // A text is never longer than its JSON.
    *text = (string_t){allocate(json->end - json->at), 0};
    while (json->at < json->end && *json->at != '"') {
        uint8_t character = *json->at++;
        if (character == '\\' && json->at < json->end) {
            static const char ESCAPES[] = "b\bf\fn\nr\rt\t";
            character = *json->at++;
            if (character == 'u') {
                append_utf8(text, read_code_point(json));
                continue;
            }
            for (const char *escape = ESCAPES; *escape; escape += 2) {
                if (character == *escape) {
                    character = escape[1];
                    break;
                }
            }
        }
        text->ptr[text->len++] = character;
    }
    return take(json, '"');
}

static void skip_value(reader_t *json) {
    int depth = 0;
    do {
        string_t text;
        if (read_text(json, &text)) continue;
        if (json->at == json->end) return;
        depth += *json->at == '{' || *json->at == '[';
        depth -= *json->at == '}' || *json->at == ']';
        json->at++;
    } while (depth > 0 || (json->at < json->end && !strchr(",}]", *json->at)));
}

// Finds a member of an object that is a text.
static bool find_text(string_t object, const char *name, string_t *text) {
    reader_t json = reader(object);
    string_t key;
    for (take(&json, '{'); read_text(&json, &key); take(&json, ',')) {
        take(&json, ':');
        if (equals(key, name)) return read_text(&json, text);
        skip_value(&json);
    }
    return false;
}

// A string as JSON.
static string_t quote(string_t string) {
    string_t json = {allocate(6 * string.len + 2), 0};
    json.ptr[json.len++] = '"';
    for (size_t i = 0; i < string.len; i++) {
        uint8_t character = string.ptr[i];
        if (character < ' ') {
            char escape[7];
            snprintf(escape, sizeof(escape), "\\u%04x", character);
            memcpy(json.ptr + json.len, escape, 6);
            json.len += 6;
            continue;
        }
        if (character == '"' || character == '\\') json.ptr[json.len++] = '\\';
        json.ptr[json.len++] = character;
    }
    json.ptr[json.len++] = '"';
    return json;
}

// Content

static media_t media(const uint8_t *data, size_t size, const char *mime_type) {
    return (media_t){.data = {copy_bytes(data, size), size}, .mime_type = copy(mime_type)};
}

static block_t text(string_t text) {
    return (block_t){.body = {TENON_PLUGIN_TYPES_CONTENT_TEXT, {.text = text}}};
}

static block_t image(void) {
    media_t image = media(PNG, sizeof(PNG), "image/png");
    return (block_t){.body = {TENON_PLUGIN_TYPES_CONTENT_IMAGE, {.image = image}}};
}

static block_t audio(void) {
    media_t audio = media(WAV, sizeof(WAV), "audio/wav");
    return (block_t){.body = {TENON_PLUGIN_TYPES_CONTENT_AUDIO, {.audio = audio}}};
}

static body_t text_body(string_t text) {
    return (body_t){TENON_PLUGIN_TYPES_RESOURCE_BODY_TEXT, {.text = text}};
}

static block_t embedded(string_t uri, const char *words, const char *mime_type) {
    contents_t contents = {
        .uri = uri,
        .mime_type = some(mime_type),
        .body = text_body(copy(words)),
    };
    return (block_t){.body = {TENON_PLUGIN_TYPES_CONTENT_RESOURCE, {.resource = contents}}};
}

// What is kept. Each call has a new instance, so that nothing is kept in variables.

typedef wasi_keyvalue_store_borrow_bucket_t bucket_t;

// Returns an error of the store as one of the contract.
static bool fail_store(error_t *err, const wasi_keyvalue_store_error_t *cause) {
    switch (cause->tag) {
    case WASI_KEYVALUE_STORE_ERROR_ACCESS_DENIED:
        return fail(err, DENIED, copy("state is not granted"));
    case WASI_KEYVALUE_STORE_ERROR_NO_SUCH_STORE:
        return fail(err, NOT_FOUND, copy("there is no such state"));
    default:
        return fail(err, FAILED, cause->val.other);
    }
}

static bool open_bucket(bucket_t *bucket, error_t *err) {
    string_t name = borrow("default");
    wasi_keyvalue_store_own_bucket_t owned;
    wasi_keyvalue_store_error_t cause;
    if (!wasi_keyvalue_store_open(&name, &owned, &cause)) return fail_store(err, &cause);
    *bucket = wasi_keyvalue_store_borrow_bucket(owned);
    return true;
}

// How often the watched resource has changed.
static bool count_updates(long long *updates, error_t *err) {
    bucket_t bucket;
    if (!open_bucket(&bucket, err)) return false;
    string_t key = borrow("updates");
    component_option_list_u8_t kept;
    wasi_keyvalue_store_error_t cause;
    if (!wasi_keyvalue_store_method_bucket_get(bucket, &key, &kept, &cause)) {
        return fail_store(err, &cause);
    }
    *updates = kept.is_some ? atoll((char *)format("%.*s", STRING(kept.val)).ptr) : 0;
    return true;
}

// Says that it has changed once more.
static bool add_update(error_t *err) {
    bucket_t bucket;
    if (!open_bucket(&bucket, err)) return false;
    string_t key = borrow("updates");
    int64_t updates;
    wasi_keyvalue_atomics_error_t cause;
    if (!wasi_keyvalue_atomics_increment(bucket, &key, 1, &updates, &cause)) {
        return fail_store(err, &cause);
    }
    return true;
}

// Adds a word to a list in JSON, and counts those that it has then.
static string_t append_word(component_option_list_u8_t list, string_t word, size_t *count) {
    string_t quoted = quote(word);
    string_t words = list.is_some ? (string_t){list.val.ptr, list.val.len} : borrow("[]");
    reader_t json = reader(words);
    string_t known;
    size_t before = 0;
    for (take(&json, '['); read_text(&json, &known); take(&json, ',')) before++;
    *count = before + 1;
    words.len = json.at - words.ptr;
    return format("%.*s%s%.*s]", STRING(words), before ? "," : "", STRING(quoted));
}

// Adds a word to those that are kept, and counts these.
static bool remember(string_t word, size_t *count, error_t *err) {
    bucket_t bucket;
    if (!open_bucket(&bucket, err)) return false;
    string_t key = borrow("words");
    wasi_keyvalue_atomics_own_cas_t seen;
    wasi_keyvalue_store_error_t cause;
    if (!wasi_keyvalue_atomics_static_cas_new(bucket, &key, &seen, &cause)) {
        return fail_store(err, &cause);
    }
    for (;;) {
        wasi_keyvalue_atomics_borrow_cas_t borrowed = wasi_keyvalue_atomics_borrow_cas(seen);
        component_option_list_u8_t kept;
        if (!wasi_keyvalue_atomics_method_cas_current(borrowed, &kept, &cause)) {
            return fail_store(err, &cause);
        }
        string_t words = append_word(kept, word, count);
        bytes_t bytes = {words.ptr, words.len};
        wasi_keyvalue_atomics_cas_error_t problem;
        if (wasi_keyvalue_atomics_swap(seen, &bytes, &problem)) return true;
        if (problem.tag != WASI_KEYVALUE_ATOMICS_CAS_ERROR_CAS_FAILED) {
            return fail_store(err, &problem.val.store_error);
        }
        // Another call was faster, and this is what it has written.
        seen = problem.val.cas_failed;
    }
}

// Tools

// What a tool is called with: its argument, if it has one, and the context.
typedef struct {
    string_t argument;
    context_t *context;
} call_t;

static bool answer(result_t *ret, string_t words) {
    *ret = (result_t){.content = LIST(block_t, text(words))};
    return true;
}

static bool test_simple_text(const call_t *call, result_t *ret, error_t *err) {
    return answer(ret, copy("This is a simple text response for testing."));
}

static bool test_image_content(const call_t *call, result_t *ret, error_t *err) {
    *ret = (result_t){.content = LIST(block_t, image())};
    return true;
}

static bool test_audio_content(const call_t *call, result_t *ret, error_t *err) {
    *ret = (result_t){.content = LIST(block_t, audio())};
    return true;
}

static bool test_embedded_resource(const call_t *call, result_t *ret, error_t *err) {
    const char *words = "This is an embedded resource content.";
    block_t resource = embedded(copy("test://embedded-resource"), words, "text/plain");
    *ret = (result_t){.content = LIST(block_t, resource)};
    return true;
}

static bool test_multiple_content_types(const call_t *call, result_t *ret, error_t *err) {
    const char *data = "{\"test\":\"data\",\"value\":123}";
    block_t words = text(copy("Multiple content types test:"));
    block_t resource = embedded(copy("test://mixed-content-resource"), data, "application/json");
    *ret = (result_t){.content = LIST(block_t, words, image(), resource)};
    return true;
}

static void log_info(const char *words) {
    string_t message = borrow(words);
    component_list_tuple2_string_string_t no_fields = {0};
    tenon_plugin_log_write(TENON_PLUGIN_LOG_LEVEL_INFO, &message, &no_fields);
}

static bool test_tool_with_logging(const call_t *call, result_t *ret, error_t *err) {
    log_info("Tool execution started");
    log_info("Tool processing data");
    log_info("Tool execution completed");
    return answer(ret, copy("Tool with logging executed successfully"));
}

static bool test_tool_with_progress(const call_t *call, result_t *ret, error_t *err) {
    for (int step = 0; step <= 100; step += 50) {
        string_t message = format("Completed step %d of 100", step);
        double total = 100;
        tenon_plugin_notify_progress(&call->context->call_id, step, &total, &message);
    }
    return answer(ret, copy("Tool with progress executed successfully"));
}

static bool test_error_handling(const call_t *call, result_t *ret, error_t *err) {
    block_t words = text(copy("This tool intentionally returns an error for testing"));
    *ret = (result_t){.content = LIST(block_t, words), .is_error = true};
    return true;
}

static bool test_update_watched_resource(const call_t *call, result_t *ret, error_t *err) {
    if (!add_update(err)) return false;
    string_t uri = borrow(WATCHED);
    tenon_plugin_notify_resource_updated(&uri);
    return answer(ret, copy("Resource updated"));
}

static bool test_trigger_tool_change(const call_t *call, result_t *ret, error_t *err) {
    tenon_plugin_notify_contributions_changed();
    return answer(ret, copy("Tools changed"));
}

static bool test_sampling(const call_t *call, result_t *ret, error_t *err) {
    tenon_plugin_model_part_t prompt = {TENON_PLUGIN_MODEL_PART_TEXT, {.text = call->argument}};
    tenon_plugin_model_message_t message = {TENON_PLUGIN_MODEL_ROLE_USER, {&prompt, 1}};
    tenon_plugin_model_completion_request_t request = {
        .model = borrow("default"),
        .messages = {&message, 1},
        .tool_choice.tag = TENON_PLUGIN_MODEL_TOOL_CHOICE_AUTO,
        .sampling.max_tokens = {true, 100},
    };
    tenon_plugin_model_completion_t completion;
    if (!tenon_plugin_inference_complete(&request, &completion, err)) return false;
    string_t words = copy("LLM response: ");
    for (size_t i = 0; i < completion.parts.len; i++) {
        const tenon_plugin_model_part_t *part = &completion.parts.ptr[i];
        if (part->tag != TENON_PLUGIN_MODEL_PART_TEXT) continue;
        words = format("%.*s%.*s", STRING(words), STRING(part->val.text));
    }
    return answer(ret, words);
}

static bool test_elicitation(const call_t *call, result_t *ret, error_t *err) {
    tenon_plugin_user_form_request_t form = {
        .message = call->argument,
        .schema = borrow("{\"type\":\"object\","
                         "\"properties\":{\"username\":{\"type\":\"string\"},"
                         "\"email\":{\"type\":\"string\"}},\"required\":[\"username\"]}"),
    };
    tenon_plugin_user_form_answer_t given;
    if (!tenon_plugin_user_ask(&form, &given, err)) return false;
    switch (given.tag) {
    case TENON_PLUGIN_USER_FORM_ANSWER_ACCEPTED: {
        string_t username = {0}, email = {0};
        find_text(given.val.accepted, "username", &username);
        find_text(given.val.accepted, "email", &email);
        const char *words = "User response: accept, %.*s, %.*s";
        return answer(ret, format(words, STRING(username), STRING(email)));
    }
    case TENON_PLUGIN_USER_FORM_ANSWER_DECLINED:
        return answer(ret, copy("User response: decline"));
    default:
        return answer(ret, copy("User response: cancel"));
    }
}

static bool test_remember(const call_t *call, result_t *ret, error_t *err) {
    size_t count;
    if (!remember(call->argument, &count, err)) return false;
    return answer(ret, format("%zu", count));
}

static bool test_wait(const call_t *call, result_t *ret, error_t *err) {
    for (;;) {
    }
}

static const struct {
    const char *name, *description;
    bool (*run)(const call_t *call, result_t *ret, error_t *err);
    // The name of its argument, which is a text.
    const char *argument;
} TOOLS[] = {
    {"test_simple_text", "Tests simple text content response", test_simple_text},
    {"test_image_content", "Tests image content response", test_image_content},
    {"test_audio_content", "Tests audio content response", test_audio_content},
    {"test_embedded_resource", "Tests embedded resource content response", test_embedded_resource},
    {"test_multiple_content_types", "Tests response with multiple content types",
     test_multiple_content_types},
    {"test_tool_with_logging", "Tests tool that emits log messages during execution",
     test_tool_with_logging},
    {"test_tool_with_progress", "Tests tool that reports progress notifications",
     test_tool_with_progress},
    {"test_error_handling", "Tests error response handling", test_error_handling},
    {"test_update_watched_resource", "Changes the watched resource", test_update_watched_resource},
    {"test_trigger_tool_change", "Says that the list of tools has changed",
     test_trigger_tool_change},
    {"test_sampling", "Tests sampling", test_sampling, "prompt"},
    {"test_elicitation", "Tests elicitation", test_elicitation, "message"},
    {"test_remember", "Remembers a word", test_remember, "word"},
    {"test_wait", "Waits until nobody wants an answer", test_wait},
};

static string_t schema(const char *argument) {
    if (!argument) return copy("{\"type\":\"object\",\"properties\":{}}");
    return format("{\"type\":\"object\",\"properties\":{\"%s\":{\"type\":\"string\"}},"
                  "\"required\":[\"%s\"]}",
                  argument, argument);
}

bool exports_tenon_plugin_tools_list_tools(exports_tenon_plugin_tools_list_tool_definition_t *ret,
                                           error_t *err) {
    ret->len = LENGTH(TOOLS);
    ret->ptr = allocate(sizeof(*ret->ptr) * ret->len);
    for (size_t i = 0; i < ret->len; i++) {
        ret->ptr[i] = (tenon_plugin_types_tool_definition_t){
            .name = copy(TOOLS[i].name),
            .description = copy(TOOLS[i].description),
            .input_schema = schema(TOOLS[i].argument),
        };
    }
    return true;
}

bool exports_tenon_plugin_tools_call_tool(string_t *name, string_t *arguments, context_t *context,
                                          result_t *ret, error_t *err) {
    for (size_t i = 0; i < LENGTH(TOOLS); i++) {
        if (!equals(*name, TOOLS[i].name)) continue;
        const char *argument = TOOLS[i].argument;
        call_t call = {.context = context};
        if (argument && !find_text(*arguments, argument, &call.argument)) {
            return fail(err, INVALID_INPUT, format("%s is not a text", argument));
        }
        return TOOLS[i].run(&call, ret, err);
    }
    return fail(err, NOT_FOUND, format("there is no tool %.*s", STRING(*name)));
}

// Resources

static const char TEMPLATE[] = "test://template/{id}/data";

static const struct {
    const char *uri, *name, *title, *description, *mime_type;
} RESOURCES[] = {
    {"test://static-text", "static-text", "Static Text Resource", "A static text resource",
     "text/plain"},
    {"test://static-binary", "static-binary", "Static Binary Resource", "A static image",
     "image/png"},
    {WATCHED, "watched-resource", "Watched Resource", "A resource that a tool changes",
     "text/plain"},
};

bool exports_tenon_plugin_resources_list_resources(
    string_t *cursor, context_t *context, exports_tenon_plugin_resources_resource_page_t *ret,
    error_t *err) {
    if (!is_first_page(cursor, err)) return false;
    typedef exports_tenon_plugin_resources_listed_resource_t listed_t;
    listed_t *listed = allocate(sizeof(listed_t) * LENGTH(RESOURCES));
    for (size_t i = 0; i < LENGTH(RESOURCES); i++) {
        listed[i] = (listed_t){
            .link.uri = copy(RESOURCES[i].uri),
            .link.name = copy(RESOURCES[i].name),
            .link.title = some(RESOURCES[i].title),
            .link.description = some(RESOURCES[i].description),
            .link.mime_type = some(RESOURCES[i].mime_type),
        };
    }
    *ret = (exports_tenon_plugin_resources_resource_page_t){
        .resources = {listed, LENGTH(RESOURCES)},
    };
    return true;
}

bool exports_tenon_plugin_resources_list_templates(
    string_t *cursor, context_t *context, exports_tenon_plugin_resources_template_page_t *ret,
    error_t *err) {
    if (!is_first_page(cursor, err)) return false;
    exports_tenon_plugin_resources_resource_template_t template = {
        .uri_template = copy(TEMPLATE),
        .name = copy("template"),
        .title = some("Resource Template"),
        .description = some("A resource template with parameter substitution"),
        .mime_type = some("application/json"),
    };
    *ret = (exports_tenon_plugin_resources_template_page_t){
        .templates = LIST(exports_tenon_plugin_resources_resource_template_t, template),
    };
    return true;
}

// Finds the id in a URI of the template.
static bool match_template(string_t uri, string_t *id) {
    string_t start = borrow("test://template/"), end = borrow("/data");
    if (!starts_with(uri, start)) return false;
    *id = (string_t){uri.ptr + start.len, uri.len - start.len};
    uint8_t *slash = memchr(id->ptr, '/', id->len);
    if (!slash || slash == id->ptr) return false;
    string_t rest = {slash, id->ptr + id->len - slash};
    id->len = slash - id->ptr;
    return rest.len == end.len && starts_with(rest, end);
}

static string_t data_of(string_t id) {
    string_t data = format("Data for ID: %.*s", STRING(id));
    return format("{\"id\":%.*s,\"templateTest\":true,\"data\":%.*s}", STRING(quote(id)),
                  STRING(quote(data)));
}

bool exports_tenon_plugin_resources_read_resource(
    string_t *uri, context_t *context, exports_tenon_plugin_resources_list_resource_contents_t *ret,
    error_t *err) {
    contents_t contents = {.uri = *uri};
    string_t id;
    if (equals(*uri, "test://static-text")) {
        contents.mime_type = some("text/plain");
        contents.body = text_body(copy("This is the content of the static text resource."));
    } else if (equals(*uri, "test://static-binary")) {
        bytes_t png = {copy_bytes(PNG, sizeof(PNG)), sizeof(PNG)};
        contents.mime_type = some("image/png");
        contents.body = (body_t){TENON_PLUGIN_TYPES_RESOURCE_BODY_BLOB, {.blob = png}};
    } else if (equals(*uri, WATCHED)) {
        long long updates;
        if (!count_updates(&updates, err)) return false;
        contents.mime_type = some("text/plain");
        contents.body = text_body(format("Watched resource content, changed %lld times", updates));
    } else if (match_template(*uri, &id)) {
        contents.mime_type = some("application/json");
        contents.body = text_body(data_of(id));
    } else {
        return fail(err, NOT_FOUND, format("there is no resource %.*s", STRING(*uri)));
    }
    *ret = (exports_tenon_plugin_resources_list_resource_contents_t)LIST(contents_t, contents);
    return true;
}

// Says what can be subscribed to. No instance knows who did, so every change is told.

bool exports_tenon_plugin_subscriptions_subscribe(string_t *uri, context_t *context, error_t *err) {
    if (equals(*uri, WATCHED)) return true;
    return fail(err, NOT_FOUND, format("%.*s never changes", STRING(*uri)));
}

bool exports_tenon_plugin_subscriptions_unsubscribe(string_t *uri, context_t *context,
                                                    error_t *err) {
    return true;
}

// Prompts

enum { MOST_ARGUMENTS = 2 };

// What stands for each argument, in the order in which the prompt lists them.
typedef const string_t *values_t;

static blocks_t fill_in_simple(values_t values) {
    return (blocks_t)LIST(block_t, text(copy("This is a simple prompt for testing.")));
}

static blocks_t fill_in_arguments(values_t values) {
    const char *words = "Prompt with arguments: arg1='%.*s', arg2='%.*s'";
    return (blocks_t)LIST(block_t, text(format(words, STRING(values[0]), STRING(values[1]))));
}

static blocks_t fill_in_resource(values_t values) {
    const char *words = "Embedded resource content for testing.";
    return (blocks_t)LIST(block_t, embedded(values[0], words, "text/plain"),
                          text(copy("Please process the embedded resource above.")));
}

static blocks_t fill_in_image(values_t values) {
    return (blocks_t)LIST(block_t, image(), text(copy("Please analyze the image above.")));
}

static const struct prompt {
    const char *name, *description;
    blocks_t (*fill_in)(values_t values);
    size_t count;
    struct {
        const char *name, *description;
    } arguments[MOST_ARGUMENTS];
} PROMPTS[] = {
    {"test_simple_prompt", "A simple prompt without arguments", fill_in_simple},
    {"test_prompt_with_arguments",
     "A prompt with required arguments",
     fill_in_arguments,
     2,
     {{"arg1", "First test argument"}, {"arg2", "Second test argument"}}},
    {"test_prompt_with_embedded_resource",
     "A prompt that includes an embedded resource",
     fill_in_resource,
     1,
     {{"resourceUri", "URI of the resource to embed"}}},
    {"test_prompt_with_image", "A prompt that includes image content", fill_in_image},
};

static exports_tenon_plugin_prompts_list_prompt_argument_t
arguments_of(const struct prompt *prompt) {
    exports_tenon_plugin_prompts_list_prompt_argument_t list = {.len = prompt->count};
    list.ptr = allocate(sizeof(*list.ptr) * list.len);
    for (size_t i = 0; i < list.len; i++) {
        list.ptr[i] = (exports_tenon_plugin_prompts_prompt_argument_t){
            .name = copy(prompt->arguments[i].name),
            .description = some(prompt->arguments[i].description),
            .required = true,
        };
    }
    return list;
}

bool exports_tenon_plugin_prompts_list_prompts(string_t *cursor, context_t *context,
                                               exports_tenon_plugin_prompts_prompt_page_t *ret,
                                               error_t *err) {
    if (!is_first_page(cursor, err)) return false;
    typedef exports_tenon_plugin_prompts_prompt_definition_t definition_t;
    definition_t *listed = allocate(sizeof(definition_t) * LENGTH(PROMPTS));
    for (size_t i = 0; i < LENGTH(PROMPTS); i++) {
        listed[i] = (definition_t){
            .name = copy(PROMPTS[i].name),
            .description = some(PROMPTS[i].description),
            .arguments = arguments_of(&PROMPTS[i]),
        };
    }
    *ret = (exports_tenon_plugin_prompts_prompt_page_t){.prompts = {listed, LENGTH(PROMPTS)}};
    return true;
}

// Finds the value of each argument among those that are given, which are no others.
static bool find_values(const struct prompt *prompt, pairs_t given, string_t *values) {
    for (size_t i = 0; i < prompt->count; i++) {
        size_t at = 0;
        while (at < given.len && !equals(given.ptr[at].f0, prompt->arguments[i].name)) at++;
        if (at == given.len) return false;
        values[i] = given.ptr[at].f1;
    }
    return given.len == prompt->count;
}

bool exports_tenon_plugin_prompts_get_prompt(string_t *name, pairs_t *arguments, context_t *context,
                                             exports_tenon_plugin_prompts_prompt_t *ret,
                                             error_t *err) {
    const struct prompt *prompt = PROMPTS, *end = PROMPTS + LENGTH(PROMPTS);
    while (prompt < end && !equals(*name, prompt->name)) prompt++;
    if (prompt == end) {
        return fail(err, NOT_FOUND, format("there is no prompt %.*s", STRING(*name)));
    }
    string_t values[MOST_ARGUMENTS];
    if (!find_values(prompt, *arguments, values)) {
        return fail(err, INVALID_INPUT, format("%s takes other arguments", prompt->name));
    }
    blocks_t blocks = prompt->fill_in(values);
    typedef exports_tenon_plugin_prompts_prompt_message_t message_t;
    message_t *messages = allocate(sizeof(message_t) * blocks.len);
    for (size_t i = 0; i < blocks.len; i++) {
        messages[i] = (message_t){
            .role = EXPORTS_TENON_PLUGIN_PROMPTS_PROMPT_ROLE_USER,
            .content = blocks.ptr[i],
        };
    }
    *ret = (exports_tenon_plugin_prompts_prompt_t){
        .description = some(prompt->description),
        .messages = {messages, blocks.len},
    };
    return true;
}

enum { MOST_VALUES = 5 };

static const struct {
    // The tag of the reference, and the name in it.
    uint8_t tag;
    const char *owner, *argument;
    const char *values[MOST_VALUES];
} VALUES[] = {
    {EXPORTS_TENON_PLUGIN_COMPLETIONS_COMPLETION_REFERENCE_PROMPT,
     "test_prompt_with_arguments",
     "arg1",
     {"paris", "park", "party", "test", "testing"}},
    {EXPORTS_TENON_PLUGIN_COMPLETIONS_COMPLETION_REFERENCE_RESOURCE_TEMPLATE,
     TEMPLATE,
     "id",
     {"123", "124", "200"}},
};

bool exports_tenon_plugin_completions_complete_argument(
    exports_tenon_plugin_completions_argument_completion_t *argument, context_t *context,
    exports_tenon_plugin_completions_suggestions_t *ret, error_t *err) {
    component_list_string_t values = {allocate(sizeof(string_t) * MOST_VALUES), 0};
    for (size_t i = 0; i < LENGTH(VALUES); i++) {
        // Both kinds of references are names.
        if (VALUES[i].tag != argument->reference.tag ||
            !equals(argument->reference.val.prompt, VALUES[i].owner) ||
            !equals(argument->name, VALUES[i].argument)) {
            continue;
        }
        for (size_t at = 0; at < MOST_VALUES && VALUES[i].values[at]; at++) {
            string_t value = copy(VALUES[i].values[at]);
            if (starts_with(value, argument->value)) values.ptr[values.len++] = value;
        }
    }
    *ret = (exports_tenon_plugin_completions_suggestions_t){
        .values = values,
        .total = {true, values.len},
    };
    return true;
}

// The rest of the world, of which this plugin has nothing.

bool exports_tenon_plugin_lifecycle_start(exports_tenon_plugin_lifecycle_identity_t *ret,
                                          error_t *err) {
    *ret = (exports_tenon_plugin_lifecycle_identity_t){
        .name = copy("everything"),
        .version = copy("0.1.0"),
        .description = copy("Has what the conformance suite of MCP asks a server for."),
    };
    return true;
}

void exports_tenon_plugin_lifecycle_stop(void) {}

// Needed on shared instances only.
void exports_tenon_plugin_cancellation_cancel(string_t *call_id) {}

bool exports_tenon_plugin_hooks_list_hooks(exports_tenon_plugin_hooks_list_hook_registration_t *ret,
                                           error_t *err) {
    *ret = (exports_tenon_plugin_hooks_list_hook_registration_t){0};
    return true;
}

bool exports_tenon_plugin_hooks_handle_event(exports_tenon_plugin_hooks_hook_event_t *event,
                                             context_t *context,
                                             exports_tenon_plugin_hooks_hook_outcome_t *ret,
                                             error_t *err) {
    return fail(err, NOT_FOUND, format("%.*s is not handled", STRING(event->point)));
}

bool exports_tenon_plugin_providers_list_providers(
    exports_tenon_plugin_providers_list_provider_definition_t *ret, error_t *err) {
    *ret = (exports_tenon_plugin_providers_list_provider_definition_t){0};
    return true;
}

bool exports_tenon_plugin_providers_list_models(
    exports_tenon_plugin_providers_list_model_info_t *ret, error_t *err) {
    *ret = (exports_tenon_plugin_providers_list_model_info_t){0};
    return true;
}

bool exports_tenon_plugin_providers_complete(tenon_plugin_model_completion_request_t *request,
                                             context_t *context,
                                             tenon_plugin_model_completion_t *ret, error_t *err) {
    return fail(err, NOT_FOUND, format("there is no model %.*s", STRING(request->model)));
}

bool exports_tenon_plugin_evals_list_evals(exports_tenon_plugin_evals_list_eval_definition_t *ret,
                                           error_t *err) {
    *ret = (exports_tenon_plugin_evals_list_eval_definition_t){0};
    return true;
}

bool exports_tenon_plugin_evals_evaluate(string_t *strategy, string_t *subject, string_t *options,
                                         context_t *context,
                                         exports_tenon_plugin_evals_evaluation_t *ret,
                                         error_t *err) {
    return fail(err, NOT_FOUND, format("there is no strategy %.*s", STRING(*strategy)));
}
