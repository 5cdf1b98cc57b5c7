"""A scripted model on loopback: Anthropic's Messages and OpenAI's Responses, as streams.

Each user turn is answered with two tool calls (one writes a file, one reads it back) and then
with a sentence that contains what was read. Requests are kept, so that a test can check what the
model received."""

import http.server
import itertools
import json
import socket
import threading
import time

WRITE = "echo from-the-model-$(ls | wc -l) > note.txt"
READ = "cat note.txt"


class ModelServer:
    """fail: what every request gets instead of a response: a status, or "nonsense", "nothing"
    (until the client disconnects), "cut" (a stream that breaks off). slow: a command that the
    first tool call runs instead."""

    def __init__(self, host="127.0.0.1"):
        self.requests = []
        self.fail = None
        self.command = None
        self.numbers = itertools.count(1)
        self.closing = threading.Event()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_HEAD(self):
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def do_GET(self):
                self.reply(404, b"{}")

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                outer.answer(self, json.loads(body or b"{}"))

            def reply(self, status, body, kind="application/json"):
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        self.server = http.server.ThreadingHTTPServer((host, 0), Handler)
        self.server.daemon_threads = True
        self.host, self.port = self.server.server_address
        self.url = f"http://{self.host}:{self.port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.closing.set()
        self.server.shutdown()
        self.server.server_close()

    def answer(self, handler, body):
        path = handler.path.partition("?")[0]
        self.requests.append({"path": path, "body": body})
        if self.fail is not None:
            return self.refuse(handler)
        if path == "/v1/messages":
            events = self.messages(body)
        elif path == "/v1/responses":
            events = self.responses(body)
        else:
            return handler.reply(404, b'{"error":{"type":"not_found_error","message":"no such path"}}')
        text = "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events)
        return handler.reply(200, text.encode(), "text/event-stream")

    def refuse(self, handler):
        if isinstance(self.fail, int):
            said = {"type": "error", "error": {"type": "refused", "message": f"the model says {self.fail}"}}
            return handler.reply(self.fail, json.dumps(said).encode())
        if self.fail == "nothing":
            self.closing.wait(600)
            return None
        if self.fail == "nonsense":
            return handler.reply(200, b"\x00\xff{{{ this is not a stream", "text/event-stream")
        handler.send_response(200)  # cut
        handler.send_header("Content-Type", "text/event-stream")
        handler.send_header("Content-Length", "100000")
        handler.end_headers()
        handler.wfile.write(b"event: message_start\ndata: {\"type\":")
        handler.wfile.flush()
        handler.connection.shutdown(socket.SHUT_RDWR)
        return None

    def step(self, results):
        """The command of the next tool call, or None when the turn ends."""
        if not results:
            return self.command or WRITE
        return READ if len(results) == 1 and not self.command else None

    # Anthropic

    def messages(self, body):
        self.number = next(self.numbers)
        results = self.claude_results(body["messages"])
        if not body.get("tools"):
            content = [{"type": "text", "text": "ok"}]
        elif command := self.step(results):
            content = [{"type": "tool_use", "id": f"toolu_{self.number}", "name": "Bash",
                        "input": {"command": command, "description": "scripted"}}]
        else:
            content = [{"type": "text", "text": f"done: {results[-1]}"}]
        return claude_stream(content, self.number, body.get("model", "m"))

    @staticmethod
    def claude_results(messages):
        """What the tools of the last turn have returned."""
        results = []
        for message in reversed(messages):
            content = message["content"]
            blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
            said = [block for block in blocks if block["type"] == "tool_result"]
            if message["role"] == "user" and not said:
                break
            results = [text_of(block["content"]) for block in said] + results
        return results

    # OpenAI

    def responses(self, body):
        self.number = next(self.numbers)
        results = []
        for item in reversed(body["input"]):
            if item.get("type") == "message" and item.get("role") == "user":
                break
            if item.get("type") in ("function_call_output", "custom_tool_call_output"):
                results.insert(0, text_of(item["output"]))
        command = self.step(results)
        if command:
            item = codex_call(body.get("tools", []), command, self.number)
        else:
            item = {"type": "message", "role": "assistant", "id": f"msg_{self.number}",
                    "content": [{"type": "output_text", "text": f"done: {results[-1]}"}]}
        usage = {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 5,
                 "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 15}
        answer = {"id": f"resp_{self.number}", "object": "response", "status": "completed", "output": [item],
                  "usage": usage}
        return [{"type": "response.created", "response": {**answer, "status": "in_progress", "output": []}},
                {"type": "response.output_item.added", "output_index": 0, "item": item},
                {"type": "response.output_item.done", "output_index": 0, "item": item},
                {"type": "response.completed", "response": answer}]

    # For tests

    def turns(self, path):
        """The requests with tools, which belong to the conversation itself."""
        return [one["body"] for one in self.requests if one["path"] == path and one["body"].get("tools")]

    def wait_for(self, count, limit_s=60):
        deadline = time.monotonic() + limit_s
        while len(self.requests) < count:
            assert time.monotonic() < deadline, f"{len(self.requests)} requests of {count}"
            time.sleep(0.05)


def text_of(content):
    if isinstance(content, str):
        return content
    return "".join(block.get("text", "") for block in content)


def claude_stream(content, number, model):
    usage = {"input_tokens": 11, "output_tokens": 1, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    yield {"type": "message_start",
           "message": {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": model, "content": [],
                       "stop_reason": None, "stop_sequence": None, "usage": usage}}
    for index, block in enumerate(content):
        if block["type"] == "text":
            yield {"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""}}
            delta = {"type": "text_delta", "text": block["text"]}
        else:
            yield {"type": "content_block_start", "index": index, "content_block": {**block, "input": {}}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    reason = "tool_use" if content[-1]["type"] == "tool_use" else "end_turn"
    yield {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None},
           "usage": {"output_tokens": 13}}
    yield {"type": "message_stop"}


def codex_call(tools, command, number):
    names = {tool.get("name") for tool in tools}
    if "exec_command" in names:
        name, arguments = "exec_command", {"cmd": command}
    elif "shell_command" in names:
        name, arguments = "shell_command", {"command": command}
    else:
        name, arguments = "shell", {"command": ["bash", "-lc", command]}
    return {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": name,
            "arguments": json.dumps(arguments)}
