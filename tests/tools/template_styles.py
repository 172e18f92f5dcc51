#!/usr/bin/env python3
"""Templates of our own in the styles that checkpoints ship (here and in tests/data/templates), over many conversations: the text of jinja2, or an
error in both.

usage: template_styles.py BUILD_DIR"""
import datetime
import itertools
import json
import tempfile

import harness

harness.need("jinja2")
import jinja2  # noqa: E402
import jinja2.ext  # noqa: E402
from jinja2.sandbox import ImmutableSandboxedEnvironment  # noqa: E402

STYLES = {
    "headers": """{{- bos_token }}
{%- if custom_tools is defined %}{% set tools = custom_tools %}{% endif %}
{%- if not date_string is defined %}{%- set date_string = strftime_now("%d %b %Y") %}{%- endif %}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|h|>system<|/h|>\\n\\n" }}
{%- if tools is not none %}{{- "Environment: ipython\\n" }}{%- endif %}
{{- "Today Date: " + date_string + "\\n\\n" }}
{%- if tools is not none and not tools_in_user_message %}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\\n\\n" }}
    {%- endfor %}
{%- endif %}
{{- system_message }}{{- "<|eot|>" }}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|h|>' + message['role'] + '<|/h|>\\n\\n'+ message['content'] | trim + '<|eot|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}{{- raise_exception("one call at once!") }}{%- endif %}
        {%- set tool_call = message.tool_calls[0].function %}
        {{- '{"name": "' + tool_call.name + '", ' }}{{- '"parameters": ' }}{{- tool_call.arguments | tojson }}{{- "}<|eot|>" }}
    {%- elif message.role == "tool" or message.role == "ipython" %}
        {{- "<|h|>ipython<|/h|>\\n\\n" }}
        {%- if message.content is mapping or message.content is iterable %}{{- message.content | tojson }}{%- else %}{{- message.content }}{%- endif %}
        {{- "<|eot|>" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|h|>assistant<|/h|>\\n\\n' }}{%- endif %}
""",
    "inst": """{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}{%- set loop_messages = messages[1:] %}
{%- else %}{%- set loop_messages = messages %}{%- endif %}
{%- if not tools is defined %}{%- set tools = none %}{%- endif %}
{%- set user_messages = loop_messages | selectattr("role", "equalto", "user") | list %}
{%- set ns = namespace() %}{%- set ns.index = 0 %}
{%- for message in loop_messages %}
    {%- if not (message.role == "tool" or message.role == "tool_results" or (message.tool_calls is defined and message.tool_calls is not none)) %}
        {%- if (message["role"] == "user") != (ns.index % 2 == 0) %}{{- raise_exception("roles must alternate") }}{%- endif %}
        {%- set ns.index = ns.index + 1 %}
    {%- endif %}
{%- endfor %}
{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if tools is not none and (message == user_messages[-1]) %}
            {{- "[AVAILABLE_TOOLS][" }}
            {%- for tool in tools %}
                {%- set tool = tool.function %}
                {{- '{"type": "function", "function": {' }}
                {%- for key, val in tool.items() if key != "return" %}
                    {%- if val is string %}{{- '"' + key + '": "' + val + '"' }}{%- else %}{{- '"' + key + '": ' + val|tojson }}{%- endif %}
                    {%- if not loop.last %}{{- ", " }}{%- endif %}
                {%- endfor %}
                {{- "}}" }}{%- if not loop.last %}{{- ", " }}{%- else %}{{- "]" }}{%- endif %}
            {%- endfor %}
            {{- "[/AVAILABLE_TOOLS]" }}
        {%- endif %}
        {%- if loop.last and system_message is defined %}{{- "[INST]" + system_message + "\\n\\n" + message["content"] + "[/INST]" }}
        {%- else %}{{- "[INST]" + message["content"] + "[/INST]" }}{%- endif %}
    {%- elif message.tool_calls is defined and message.tool_calls is not none %}
        {{- "[TOOL_CALLS][" }}
        {%- for tool_call in message.tool_calls %}
            {%- set out = tool_call.function|tojson %}{{- out[:-1] }}
            {%- if not tool_call.id is defined or tool_call.id|length != 9 %}{{- raise_exception("ids have 9 characters!") }}{%- endif %}
            {{- ', "id": "' + tool_call.id + '"}' }}{%- if not loop.last %}{{- ", " }}{%- else %}{{- "]" + eos_token }}{%- endif %}
        {%- endfor %}
    {%- elif message["role"] == "assistant" %}{{- message["content"] + eos_token}}
    {%- elif message["role"] == "tool" %}
        {%- if message.content is defined and message.content.content is defined %}{%- set content = message.content.content %}{%- else %}{%- set content = message.content %}{%- endif %}
        {{- '[TOOL_RESULTS]{"content": ' + content|string + ", " }}{{- '"call_id": "' + message.tool_call_id + '"}[/TOOL_RESULTS]' }}
    {%- else %}{{- raise_exception("no such role!") }}{%- endif %}
{%- endfor %}
""",
    "think-strip": """{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}{% set ns = namespace(is_first=false, is_tool=false, system_prompt='', is_first_sp=true) %}{%- for message in messages %}{%- if message['role'] == 'system' %}{%- if ns.is_first_sp %}{% set ns.system_prompt = ns.system_prompt + message['content'] %}{% set ns.is_first_sp = false %}{%- else %}{% set ns.system_prompt = ns.system_prompt + '\\n\\n' + message['content'] %}{%- endif %}{%- endif %}{%- endfor %}{{ bos_token }}{{ ns.system_prompt }}{%- for message in messages %}{%- if message['role'] == 'user' %}{%- set ns.is_tool = false -%}{{'<|U|>' + message['content']}}{%- endif %}{%- if message['role'] == 'assistant' and 'tool_calls' in message %}{%- set ns.is_tool = false -%}{%- for tool in message['tool_calls'] %}{%- if not ns.is_first %}{%- if message['content'] is none %}{{'<|A|><calls>' + tool['type'] + '<sep>' + tool['function']['name'] + '\\n```json\\n' + tool['function']['arguments'] + '\\n```'}}{%- else %}{{'<|A|>' + message['content'] + '<calls>' + tool['type'] + tool['function']['arguments']|tojson}}{%- endif %}{%- set ns.is_first = true -%}{%- endif %}{%- endfor %}{{'</calls><|end|>'}}{%- endif %}{%- if message['role'] == 'assistant' and 'tool_calls' not in message %}{%- if ns.is_tool %}{{'<|out|>' + message['content'] + '<|end|>'}}{%- set ns.is_tool = false -%}{%- else %}{% set content = message['content'] %}{% if '</think>' in content %}{% set content = content.split('</think>')[-1] %}{% endif %}{{'<|A|>' + content + '<|end|>'}}{%- endif %}{%- endif %}{%- if message['role'] == 'tool' %}{%- set ns.is_tool = true -%}{{'<out>' + message['content'] + '</out>'}}{%- endif %}{%- endfor -%}{% if add_generation_prompt and not ns.is_tool %}{{'<|A|><think>\\n'}}{% endif %}""",
    "reverse-scan": """{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0].role == 'system' %}{{- messages[0].content + '\\n\\n' }}{%- endif %}
    {{- "# Tools\\n<tools>" }}
    {%- for tool in tools %}{{- "\\n" }}{{- tool | tojson }}{%- endfor %}
    {{- "\\n</tools><|im_end|>\\n" }}
{%- else %}
    {%- if messages[0].role == 'system' %}{{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}{%- endif %}
{%- endif %}
{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step_tool and message.role == "user" and message.content is string and not(message.content.startswith('<r>') and message.content.endswith('</r>')) %}
        {%- set ns.multi_step_tool = false %}{%- set ns.last_query_index = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.content is string %}{%- set content = message.content %}{%- else %}{%- set content = '' %}{%- endif %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {%- set reasoning_content = '' %}
        {%- if message.reasoning_content is string %}{%- set reasoning_content = message.reasoning_content %}
        {%- else %}
            {%- if '</think>' in content %}
                {%- set reasoning_content = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
                {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
            {%- endif %}
        {%- endif %}
        {%- if loop.index0 > ns.last_query_index %}
            {%- if loop.last or (not loop.last and reasoning_content) %}{{- '<|im_start|>' + message.role + '\\n<think>\\n' + reasoning_content.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') }}
            {%- else %}{{- '<|im_start|>' + message.role + '\\n' + content }}{%- endif %}
        {%- else %}{{- '<|im_start|>' + message.role + '\\n' + content }}{%- endif %}
        {%- if message.tool_calls %}
            {%- for tool_call in message.tool_calls %}
                {%- if (loop.first and content) or (not loop.first) %}{{- '\\n' }}{%- endif %}
                {%- if tool_call.function %}{%- set tool_call = tool_call.function %}{%- endif %}
                {{- '<tool_call>\\n{"name": "' }}{{- tool_call.name }}{{- '", "arguments": ' }}
                {%- if tool_call.arguments is string %}{{- tool_call.arguments }}{%- else %}{{- tool_call.arguments | tojson }}{%- endif %}
                {{- '}\\n</tool_call>' }}
            {%- endfor %}
        {%- endif %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == "tool" %}
        {%- if loop.first or (messages[loop.index0 - 1].role != "tool") %}{{- '<|im_start|>user' }}{%- endif %}
        {{- '\\n<r>\\n' }}{{- content }}{{- '\\n</r>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}{{- '<|im_end|>\\n' }}{%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}{%- endif %}""",
    "typescript": """{%- macro kind(spec, depth=0) -%}
{%- if spec.type == "array" -%}{%- if spec["items"] -%}{{ kind(spec["items"], depth + 1) }}[]{%- else -%}any[]{%- endif -%}
{%- elif spec.type is defined and spec.type is iterable and spec.type is not string -%}{{ spec.type | join(" | ") }}
{%- elif spec.oneOf -%}{%- for v in spec.oneOf -%}{{ kind(v) }}{%- if not loop.last %} | {% endif -%}{%- endfor -%}
{%- elif spec.type == "string" -%}{%- if spec.enum -%}{{ '"' + spec.enum|join('" | "') + '"' }}{%- else -%}string{%- if spec.nullable %} | null{% endif -%}{%- endif -%}
{%- elif spec.type in ("number", "integer") -%}number
{%- elif spec.type == "object" -%}{%- if spec.properties -%}{
{% for name, prop in spec.properties.items() -%}{{ '  ' * depth + name }}{%- if name not in (spec.required or []) -%}?{%- endif -%}: {{ kind(prop, depth + 1) }}{%- if prop.default is defined %} // default: {{ prop.default|tojson if prop.default is not string else prop.default }}{% endif %}
{% endfor -%}{{ '  ' * depth }}}{%- else -%}object{%- endif -%}
{%- else -%}any{%- endif -%}
{%- endmacro -%}
{%- for tool in tools or [] %}{% set f = tool.function %}
{%- if f.description %}// {{ f.description.replace('\\n', '\\n// ') }}
{% endif -%}type {{ f.name }} = (_: {{ kind(f.parameters, 1) }}) => any;
{% endfor %}
{%- for message in messages %}{{ '<|start|>' ~ message.role ~ '<|message|>' ~ message.content ~ '<|end|>' }}{%- endfor %}""",
    "turns": """{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {%- if messages[0]['content'] is string -%}{%- set first_user_prefix = messages[0]['content'] + '\\n\\n' -%}{%- else -%}{%- set first_user_prefix = messages[0]['content'][0]['text'] + '\\n\\n' -%}{%- endif -%}
    {%- set loop_messages = messages[1:] -%}
{%- else -%}{%- set first_user_prefix = "" -%}{%- set loop_messages = messages -%}{%- endif -%}
{%- for message in loop_messages -%}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}{{ raise_exception("Conversation roles must alternate") }}{%- endif -%}
    {%- if (message['role'] == 'assistant') -%}{%- set role = "model" -%}{%- else -%}{%- set role = message['role'] -%}{%- endif -%}
    {{ '<start_of_turn>' + role + '\\n' + (first_user_prefix if loop.first else "") }}
    {%- if message['content'] is string -%}{{ message['content'] | trim }}
    {%- elif message['content'] is iterable -%}
        {%- for item in message['content'] -%}{%- if item['type'] == 'image' -%}{{ '<image>' }}{%- elif item['type'] == 'text' -%}{{ item['text'] | trim }}{%- endif -%}{%- endfor -%}
    {%- else -%}{{ raise_exception("Invalid content type") }}{%- endif -%}
    {{ '<end_of_turn>\\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}{{'<start_of_turn>model\\n'}}{%- endif -%}
""",
    "glm": """[gMASK]<sop>
{%- if tools -%}
<|system|>
# Tools
{% for tool in tools %}
{{ tool | tojson(ensure_ascii=False) }}
{% endfor %}
{%- endif -%}
{%- macro visible_text(content) -%}{%- if content is string -%}{{- content }}{%- elif content is iterable and content is not mapping -%}{%- for item in content -%}{%- if item is mapping and item.type == 'text' -%}{{- item.text }}{%- elif item is string -%}{{- item }}{%- endif -%}{%- endfor -%}{%- else -%}{{- content }}{%- endif -%}{%- endmacro -%}
{%- set ns = namespace(last_user_index=-1) %}{%- for m in messages %}{%- if m.role == 'user' %}{% set ns.last_user_index = loop.index0 -%}{%- endif %}{%- endfor %}
{% for m in messages %}
{%- if m.role == 'user' -%}<|user|>
{{ visible_text(m.content) }}
{{- '/nothink' if (enable_thinking is defined and not enable_thinking and not visible_text(m.content).endswith("/nothink")) else '' -}}
{%- elif m.role == 'assistant' -%}<|assistant|>
{%- set reasoning_content = '' %}{%- set content = visible_text(m.content) %}
{%- if m.reasoning_content is string %}{%- set reasoning_content = m.reasoning_content %}{%- elif '</think>' in content %}{%- set reasoning_content = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}{%- set content = content.split('</think>')[-1].lstrip('\\n') %}{%- endif %}
{%- if loop.index0 > ns.last_user_index and reasoning_content -%}{{ '\\n<think>' + reasoning_content.strip() +  '</think>'}}{%- else -%}{{ '\\n<think></think>' }}{%- endif -%}
{%- if content.strip() -%}{{ '\\n' + content.strip() }}{%- endif -%}
{% if m.tool_calls %}{% for tc in m.tool_calls %}{%- if tc.function %}{%- set tc = tc.function %}{%- endif %}{{ '\\n<tool_call>' + tc.name }}
{% set _args = tc.arguments %}{% for k, v in _args.items() %}<arg_key>{{ k }}</arg_key>
<arg_value>{{ v | tojson(ensure_ascii=False) if v is not string else v }}</arg_value>
{% endfor %}</tool_call>{% endfor %}{% endif %}
{%- elif m.role == 'tool' -%}{%- if m.content is string -%}{%- if loop.first or (messages[loop.index0 - 1].role != "tool") %}{{- '<|observation|>' }}{%- endif %}{{- '\\n<r>\\n' }}{{- m.content }}{{- '\\n</r>' }}{%- endif -%}
{%- elif m.role == 'system' -%}<|system|>
{{ visible_text(m.content) }}
{%- endif -%}{%- endfor -%}
{%- if add_generation_prompt -%}<|assistant|>{{- '\\n<think></think>' if (enable_thinking is defined and not enable_thinking) else '' -}}{%- endif -%}""",
    "roles-built": """{% for message in messages %}{% if message['role'] == 'system' and 'tools' in message and message['tools'] is not none %}{{ '<|' + message['role'] + '|>' + message['content'] + '<|tool|>' + message['tools'] + '<|/tool|>' + '<|end|>' }}{% else %}{{ '<|' + message['role'] + '|>' + message['content'] + '<|end|>' }}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>' }}{% else %}{{ eos_token }}{% endif %}""",
    "zephyr": """{% for message in messages %}\n{% if message['role'] == 'user' %}\n{{ '<|user|>\\n' + message['content'] + eos_token }}\n{% elif message['role'] == 'system' %}\n{{ '<|system|>\\n' + message['content'] + eos_token }}\n{% elif message['role'] == 'assistant' %}\n{{ '<|assistant|>\\n'  + message['content'] + eos_token }}\n{% endif %}\n{% if loop.last and add_generation_prompt %}\n{{ '<|assistant|>' }}\n{% endif %}\n{% endfor %}""",
    "alpaca": """{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}{% set system_message = messages[0]['content'].strip() + '\n' %}{% else %}{% set loop_messages = messages %}{% set system_message = '' %}{% endif %}{{ system_message }}{% for message in loop_messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('alternate') }}{% endif %}{% if message['role'] == 'user' %}{{ '### Instruction:\n' + message['content'].strip() }}{% elif message['role'] == 'assistant' %}{{ '### Response:\n' + message['content'].strip() }}{% endif %}{% if not loop.last %}{{ '\n\n' }}{% endif %}{% if loop.last and message['role'] == 'user' and add_generation_prompt %}{{ '\n\n### Response:' }}{% endif %}{% endfor %}""",
    "documents": """{%- set available_tools = tools if tools else [] -%}{%- set instruction -%}
{% if messages[0]["role"] == "system" %}{{ messages[0]["content"] }}{% set rest = messages[1:] %}{% else %}Be helpful.{% set rest = messages %}{% endif %}
{%- endset -%}
{{ instruction | indent(2, true) }}
{%- if documents %}
{% for document in documents %}
Document: {{ loop.index0 }}
{% for key, value in document.items() %}{{ key }}: {{ value }}
{% endfor %}{% endfor %}{% endif %}
{%- for tool in available_tools %}
```python
def {{ tool.function.name }}({% for name, fields in (tool.function.parameters.properties or {})|dictsort %}{{ name }}: {% if fields.type == 'string' %}str{% else %}{{ fields.type }}{% endif %}{% if name not in tool.function.parameters.required %} = None{% endif %}{% if not loop.last %}, {% endif %}{% endfor %}):
    \"\"\"{{ tool.function.description|default('none')|wordcount }} words: {{ tool.function.description | truncate(20) | title }}\"\"\"
```
{%- endfor %}
{%- for message in messages|rejectattr('role', 'equalto', 'system') %}
{{ message.role | upper | center(15) }}|{{ message.content | default('', true) | string | replace('\n', ' ') }}
{%- endfor %}""",
    "call-blocks": """{%- macro turn(role) -%}<|{{ role }}|>{{ caller(role) }}<|/{{ role }}|>{%- endmacro -%}
{%- for group in messages | groupby('role') %}{{ group.grouper }}={{ group.list | length }};{% endfor %}
{%- for message in messages %}{% call(r) turn(message.role) %}{{ r[:1] }}:{{ message.content if message.content is string else message.content | map(attribute='text') | join }}{% endcall %}
{% endfor %}{% filter trim %} {{ messages | map(attribute='role') | unique | sort | join('/') }} {% endfilter %}""",
    "generation": """{%- for message in messages -%}
{%- if message.role == 'assistant' -%}{% generation %}{{ '<|a|>' + message.content + '<|e|>' }}{% endgeneration %}
{%- else -%}{{ '<|' ~ message.role[0] ~ '|>' ~ message.content ~ '<|e|>' }}{%- endif -%}
{%- if loop.index > 3 %}{% break %}{% endif -%}{%- endfor -%}{{ loop is defined }}""",
    "xml": """{%- macro keys(dict_, handled) %}{%- if dict_ is mapping %}{%- for k in dict_ %}{%- if k not in handled %}
{%- if dict_[k] is mapping or (dict_[k] is iterable and dict_[k] is not string) %}{{- '\\n<' ~ k ~ '>' ~ (dict_[k] | tojson | safe) ~ '</' ~ k ~ '>' }}{%- else %}{{- '\\n<' ~ k ~ '>' ~ (dict_[k] | string) ~ '</' ~ k ~ '>' }}{%- endif %}{%- endif %}{%- endfor %}{%- endif %}{% endmacro %}
{%- for tool in tools | default([], true) %}{%- if tool.function is defined %}{%- set tool = tool.function %}{%- endif %}
{{- "\\n<function>\\n<name>" ~ tool.name ~ "</name>" }}
{%- if tool.parameters is defined and tool.parameters is mapping and tool.parameters.properties is defined %}{%- for n, f in tool.parameters.properties|items %}
{{- '\\n<parameter><name>' ~ n ~ '</name>' }}{%- if f.type is defined %}{{- '\\n<type>' ~ (f.type | string) ~ '</type>' }}{%- endif %}{{ keys(f, ['name', 'type']) }}{{- '</parameter>' }}{%- endfor %}{%- endif %}
{{- '\\n</function>' }}{%- endfor %}
{%- for m in messages %}{{ m.role }}{% if m.tool_calls is defined and m.tool_calls is iterable and m.tool_calls | length > 0 %}{%- for tc in m.tool_calls %}{%- if tc.function.arguments is mapping %}{%- for a, v in tc.function.arguments|items %}{{- '<parameter=' + a + '>\\n' }}{%- set v = v | tojson | safe if v is mapping or (v is sequence and v is not string) else v | string %}{{- v }}{{- '\\n</parameter>\\n' }}{%- endfor %}{%- endif %}{%- endfor %}{% endif %}{% if not loop.last %}{{ loop.nextitem.role }}{% endif %}{%- endfor %}""",
    "counted": """{% set ns = namespace(out='', n=0, seen=[]) %}{% for message in messages %}{% set ns.n = ns.n + (message.content|length if message.content is string else 0) %}{% set ns.seen = ns.seen + [message.role] %}{% set ns.out = ns.out ~ "%02d %s: %s|" % (loop.index, message.role, message.content) %}{% endfor %}{{ ns.out }}{{ ns.n }} {{ ns.seen|unique|list }} {{ ns.seen | select('in', ['user', 'assistant']) | list | count }} {{ (ns.n / 3) | round(2) }} {{ ns.n // 3 }} {{ -ns.n % 7 }} {{ '{:>6}|{:<6}|{!r}'.format(ns.n, 'x', ns.seen[:1]) }}""",
    "part-lists": """{%- for message in messages %}{{ message.role }}: {% if message.content is string %}{{ message.content }}{% elif message.content is none or message.content is not defined %}-{% else %}{% for part in message.content if part.type == 'text' %}{{ part.text }}{{ "" if loop.last else " + " }}{% else %}(none){% endfor %}{% endif %}
{% endfor -%}""",
    "prefix": """{%- set bos = bos_token if bos_token is defined else '' -%}{{ bos }}{%- for m in messages if m.role != 'system' -%}{{ {'user': 'Human', 'assistant': 'Assistant'}.get(m.role, m.role | capitalize) }}: {{ (m.content or '') | string | trim }}{{ '\n\n' if not loop.last or add_generation_prompt }}{%- endfor -%}{{ 'Assistant:' if add_generation_prompt and (messages | last).role == 'user' else '' }}""",
    "nested-loops": """{%- for m in messages -%}{%- set outer = loop -%}{%- for w in (m.content if m.content is string else '').split() -%}{{ outer.index }}.{{ loop.index }}{{ ':' ~ w if w.isalpha() else '!' ~ w|lower }}{{ ',' if not (loop.last and outer.last) }}{%- else -%}empty{%- endfor -%}{%- endfor -%}""",
    "recursive": """{%- for key, value in (tools[0] if tools else {'a': {'b': 1}}).items() recursive -%}{{ '\n' + '  ' * loop.depth0 + key }}{% if value is mapping %}:{{ loop(value.items()) }}{% else %} = {{ value | tojson }}{% endif %}{%- endfor -%}""",
    "with-dates": """{%- with today = strftime_now('%Y-%m-%d'), who = (messages | map(attribute='role') | first | default('nobody')) -%}{{ today }} {{ who }} {{ strftime_now('%A, %d %B %Y') }}{%- endwith -%}{{ messages[-1]['content'][:5] if messages and messages[-1].content is string }}{{ messages[-1].get('name', 'anon') if messages }}""",
}


def conversations():
    tool = {"type": "function", "function": {"name": "get_weather", "description": "Weather of a \"city\"\nfor today, in short words", "parameters": {"type": "object", "properties": {
        "city": {"type": "string", "description": "Z\u00fcrich <b>"}, "unit": {"type": "string", "enum": ["C", "F"], "default": "C"}, "days": {"type": "array", "items": {"type": "integer"}},
        "items": {"type": ["string", "null"]}, "deep": {"type": "object", "properties": {"x": {"type": "number", "default": 1.5}}, "required": ["x"]}}, "required": ["city"]}}}
    call = {"id": "abcDEF123", "type": "function", "function": {"name": "get_weather", "arguments": {"city": "Z\u00fcrich", "n": 1, "l": [1, {"a": None}], "t": True}}}
    text_call = {"id": "x", "type": "function", "function": {"name": "f", "arguments": "{\"a\": 1}"}}
    chats = [
        [{"role": "user", "content": "Hi there"}],
        [{"role": "system", "content": " Be brief. \n"}, {"role": "user", "content": "Hi\nthere <b>&amp; 'q' \"Q\""}],
        [{"role": "user", "content": "1+1"}, {"role": "assistant", "content": "<think>\nadd\n</think>\n\n2"}, {"role": "user", "content": "  2+2 \U0001f600 \u4f60\u597d "}],
        [{"role": "user", "content": "1"}, {"role": "assistant", "content": "2", "reasoning_content": "why\n"}, {"role": "user", "content": "3"}, {"role": "assistant", "content": "4", "reasoning_content": "because"}],
        [{"role": "user", "content": "w?"}, {"role": "assistant", "content": "", "tool_calls": [call]}, {"role": "tool", "name": "get_weather", "tool_call_id": "abcDEF123", "content": "{\"t\": 21.5}"}, {"role": "user", "content": "thanks"}],
        [{"role": "user", "content": "w?"}, {"role": "assistant", "content": None, "tool_calls": [text_call, call]}, {"role": "tool", "tool_call_id": "x", "content": "ok"}, {"role": "tool", "tool_call_id": "y", "content": "ok2"}],
        [{"role": "user", "content": [{"type": "text", "text": "Part one. "}, {"type": "image"}, {"type": "text", "text": "Part two."}]}],
        [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}], [], [{"role": "system", "content": "only"}], [{"role": "narrator", "content": "x", "name": "N"}],
    ]
    extras = [{}, {"tools": [tool]}, {"enable_thinking": False}, {"documents": [{"title": "T", "text": "x\ny"}], "date_string": "1 Jan 2020"}]
    for messages, extra, prompt in itertools.product(chats, extras, (True, False)):
        yield {"tools": None, "documents": None, "bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": prompt, "messages": messages, **extra}


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller):
        return caller()


def environment():
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = lambda x, ensure_ascii=False, indent=None, separators=None, sort_keys=False: json.dumps(
        x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)
    env.globals.update(raise_exception=raise_exception, strftime_now=datetime.datetime(2026, 1, 15, 12).strftime)
    return env


def main():
    env, counts, bad = environment(), [0, 0], []
    for path in sorted((harness.SOURCE / "tests/data/templates").glob("*.jinja")):
        STYLES[path.stem] = path.read_text()
    with tempfile.TemporaryDirectory() as folder:
        for name, source in STYLES.items():
            path, variables = f"{folder}/{name}.jinja", f"{folder}/v.json"
            with open(path, "w", newline="") as out:
                out.write(source)
            template = env.from_string(source)
            for values in conversations():
                try:
                    want = template.render(**values)
                except Exception as error:
                    want = error
                with open(variables, "w") as out:
                    json.dump(values, out)
                got = harness.run(harness.QUERN, "template", "--file", path, "--vars", variables, "--now", "2026-01-15T12:00:00", expect=None)
                failed = isinstance(want, Exception)
                counts[failed] += 1
                equal = got.returncode == 3 if failed else got.returncode == 0 and got.stdout.decode() == want
                if failed and isinstance(want, jinja2.exceptions.TemplateError) and type(want) is jinja2.exceptions.TemplateError:
                    equal = equal and str(want) in got.stderr.decode()
                if not equal:
                    bad.append(f"{name} {json.dumps(values)[:300]}\n  want {str(want)!r}\n  got  {(got.stdout or got.stderr)!r}")
    print("\n".join(bad[:5]), end="\n" if bad else "")
    harness.check(not bad, f"{len(bad)} renderings differ")
    print(f"template_styles: {len(STYLES)} templates, {counts[0]} texts equal, {counts[1]} errors in both")


main()
