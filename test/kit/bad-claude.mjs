#!/usr/bin/env node
// Stands in for a claude program that behaves badly, in the ways that its prompt names. It begins and ends as claude does.
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

const version = '2.1.329'
const args = process.argv.slice(2)
const write = (text) => new Promise((done) => process.stdout.write(text, done))
const say = (value) => write(`${JSON.stringify({ session_id: 'ses-1', ...value })}\n`)
const text = (words) => ({ type: 'assistant', message: { id: words, content: [{ type: 'text', text: words }] } })
const result = {
  type: 'result',
  subtype: 'success',
  is_error: false,
  result: 'done',
  num_turns: 1,
  queued_turn_count: 0,
}
const ask = (id, command, callId) => ({
  type: 'control_request',
  request_id: id,
  request: {
    subtype: 'hook_callback',
    callback_id: 'gate',
    input: {
      hook_event_name: 'PreToolUse',
      cwd: process.cwd(),
      tool_name: 'Bash',
      tool_input: { command },
      tool_use_id: callId,
    },
  },
})

if (args[0] === '--version' || args[0] === 'auth') {
  process.stdout.write(args[0] === 'auth' ? '{"loggedIn":true}\n' : `${version} (Claude Code)\n`)
  process.exit(0)
}
if (version === '2.1.197' && args.some((arg) => arg.startsWith('--system-prompt-snapshot'))) {
  process.stderr.write("error: unknown option '--system-prompt-snapshot=off'\n")
  process.exit(1)
}
const input = createInterface({ input: process.stdin })[Symbol.asyncIterator]()
const next = async () => JSON.parse((await input.next()).value)
const hello = await next()
await say({ type: 'control_response', response: { subtype: 'success', request_id: hello.request_id, response: {} } })
const [, how, mark] = /do (\S+) (\S+)/.exec((await next()).message.content[0].text)
const forEver = () => new Promise(() => setInterval(() => {}, 60_000))
const end = async () => {
  await say(text('The last words.'))
  await say(result)
  process.exit(0)
}
if (how === 'silence') await forEver()
await say({ type: 'system', subtype: 'init', model: 'bad', claude_code_version: version })

const ways = {
  // A device holds 64 MiB that its server has not taken. With less than that nothing is dropped, however slow the server is.
  async longLine() {
    await write('{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"')
    for (let megabytes = 0; megabytes < 48; megabytes++) await write('x'.repeat(1024 * 1024))
    await write('"}]}}\n')
  },
  async noText() {
    await write(Buffer.from([0xff, 0xfe, 0x80, 0x7b, 0xc3, 0x0a]))
  },
  async wrongShape() {
    await write('{"type":"assistant","message":7}\n[1,2]\n{"type":{}}\n{"type":"control_request"}\nnull\n')
  },
  async goesOn() {
    await say(text('The last words.'))
    await say(result)
    // Standard input is closed by whoever takes the result.
    while (!(await input.next()).done);
    await say(text('And one more thing.'))
    process.exit(0)
  },
  async asksTwice() {
    // In one write: an answer to the first could else come before the second is there.
    const both = [ask('one', 'echo allowed', 'call-1'), ask('one', 'touch denied', 'call-2')]
    await write(both.map((each) => `${JSON.stringify({ session_id: 'ses-1', ...each })}\n`).join(''))
    const { response } = await next()
    await say(text(JSON.stringify(response)))
  },
  async otherSession() {
    await say({ type: 'control_response', response: { subtype: 'success', request_id: 'never-asked', response: {} } })
    await say({ ...text('Of another session.'), session_id: 'ses-other' })
    await say({ type: 'system', subtype: 'init', model: 'bad', session_id: 'ses-other' })
    await say({ ...result, result: 'Done elsewhere.', session_id: 'ses-other' })
    const foreign = { ...ask('two', 'echo allowed', 'call-3'), session_id: 'ses-other' }
    await say(foreign)
    const { response } = await next()
    if (response.response.hookSpecificOutput.permissionDecision !== 'deny') process.exit(1)
  },
  async closesInput() {
    process.stdin.destroy()
    await say(ask('one', 'echo allowed', 'call-1'))
    await say(text('I hear nothing.'))
  },
  async forksAway() {
    const stays = `trap '' HUP INT TERM; while :; do sleep 1; done # ${mark}`
    const child = spawn('/bin/sh', ['-c', `(/bin/sh -c "$0" &)`, stays], { detached: true, stdio: 'ignore' })
    await new Promise((done) => child.on('exit', done))
    process.exit(0)
  },
  end,
}
for (const each of how.split(',')) await ways[each]()
await end()
