// Stands in for cursor-agent, which cannot be had without an account: it does what Cursor's pages say of `status`, of print
// mode (replays a recorded stream, then lingers) and of `acp` (asks before its one command). With a file `hold` in its folder it
// waits for a file `go` before that, and makes `begun` before and `asked` after.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'

const args = process.argv.slice(2)
const tell = (value) => process.stdout.write(`${JSON.stringify(value)}\n`)
if (args.includes('--version')) process.stdout.write('2026.07.20-standin\n')
else if (args[0] === 'status') tell({ status: 'authenticated', isAuthenticated: true })
else if (args.includes('acp')) acp()
else await print()

function linesOf(name) {
  const stream = readFileSync(new URL(`../fixtures/harness/cursor/${name}.jsonl`, import.meta.url), 'utf8')
  return stream.split(/(?<=\n)/)
}

async function print() {
  for await (const _ of process.stdin);
  for (const line of linesOf('success')) {
    process.stdout.write(line)
    await sleep(20)
  }
  await sleep(1_500)
}

/** Answers as the written stream of `acp` does. Without its input nobody can allow anything: it ends, and what waits is never made. */
function acp() {
  const [initialized, unsigned, signedIn, opened, ...turn] = linesOf('acp').map((line) => JSON.parse(line))
  const asked = turn.at(-1)
  const { toolCallId, rawInput } = asked.params.toolCall
  const { sessionId } = asked.params
  let hasSignedIn = false
  let prompt = null
  const update = (fields) => tell({ jsonrpc: '2.0', method: 'session/update', params: { sessionId, update: fields } })
  const on = {
    initialize: (id) => tell({ ...initialized, id }),
    authenticate(id) {
      hasSignedIn = true
      tell({ ...signedIn, id })
    },
    'session/new': (id) => tell({ ...(hasSignedIn ? opened : unsigned), id }),
    async 'session/prompt'(id) {
      prompt = id
      if (existsSync('hold')) {
        writeFileSync('begun', '')
        while (!existsSync('go')) await sleep(20)
      }
      for (const line of turn) tell(line)
      if (existsSync('hold')) writeFileSync('asked', '')
    },
  }
  createInterface({ input: process.stdin })
    .on('line', (line) => {
      const { id, method, result } = JSON.parse(line)
      if (method !== undefined) return void on[method]?.(id)
      if (id !== asked.id) return
      const isAllowed = result.outcome.optionId === 'allow-once'
      if (isAllowed) spawnSync('/bin/sh', ['-c', rawInput.command])
      update({ sessionUpdate: 'tool_call_update', toolCallId, status: isAllowed ? 'completed' : 'failed' })
      const text = isAllowed ? 'Done.' : 'I may not.'
      update({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } })
      tell({ jsonrpc: '2.0', id: prompt, result: { stopReason: 'end_turn' } })
    })
    .on('close', () => process.exit(0))
}
