import { chmodSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Bench } from './context.ts'
import { atMost, compare } from './measure.ts'
import { startStandInStack, type StandInStack } from './stand-in.ts'
import { openPipe, type Pipe } from './wake.ts'
import { size } from './sizes.ts'

/**
 * From the moment the wake's request is sent to the first instruction of a claude that has skills of the workspace and MCP servers behind doors,
 * against one without.
 */
export const skills: Bench = {
  name: 'skills',
  about: 'start of a run with 20 skills that the device has already and 3 MCP servers, against one without',
  async run(context) {
    const pipe = openPipe(join(context.scratch, 'skills-pipe'))
    const stack = await startStandInStack(context, { name: 'skills' })
    try {
      tellStart(join(stack.home, 'bin'), join(context.scratch, 'skills-pipe'))
      const [plain, skilled] = [await stack.claudeAgent(), await stack.claudeAgent()]
      for (let number = 1; number <= count; number++) await give(stack, skilled, number)
      for (let number = 1; number <= servers; number++) await serve(stack, skilled, number)
      // The first one brings them to the device.
      for (const agent of [plain, skilled]) await begin(stack, pipe, agent)
      const samples = async (agent: string) => {
        const times: number[] = []
        for (let at = 0; at < perRound; at++) times.push(await begin(stack, pipe, agent))
        return times
      }
      return [
        await compare({
          name: `start of a run with ${count} skills and ${servers} servers`,
          unit: 'ms',
          peerIs: 'without them',
          target: atMost(1.15),
          rounds: context.rounds,
          ours: () => samples(skilled),
          peer: () => samples(plain),
        }),
      ]
    } finally {
      await stack.end()
      pipe.close()
    }
  },
}

const count = 20
const servers = 3
const perRound = size(6, 1)

/** Puts a program before the stand-in that says when it begins. */
function tellStart(bin: string, pipe: string): void {
  const standIn = join(bin, 'stand-in.mjs')
  renameSync(join(bin, 'claude'), standIn)
  const lines = ['#!/bin/sh', `case "$1" in --version|auth) ;; *) echo >'${pipe}';; esac`, `exec '${standIn}' "$@"`, '']
  writeFileSync(join(bin, 'claude'), lines.join('\n'))
  chmodSync(join(bin, 'claude'), 0o755)
}

async function give({ server }: StandInStack, agent: string, number: number): Promise<void> {
  const file = (path: string, bytes: number) => ({ path, content: `${number} ${'text '.repeat(bytes / 5)}` })
  const files = [file('SKILL.md', 4_000), file('references/more.md', 20_000), file('scripts/run.sh', 2_000)]
  const slug = `skill-${number}`
  const body = { slug, name: slug, description: 'Says what to do.', enabledByDefault: false, bundle: { files } }
  await server.call('POST', '/skills', body)
  await server.call('PUT', `/skills/${slug}/agents/${agent}`, { enabled: true })
}

/** Nobody listens there: the start of a run does not wait for it. */
async function serve({ server }: StandInStack, agentId: string, number: number): Promise<void> {
  const headers = { authorization: 'Bearer ${BENCH_TOKEN:-none}' }
  const body = { name: `server-${number}`, url: 'http://127.0.0.1:9/mcp', headers, agentId }
  await server.call('POST', '/mcp-servers', body)
}

async function begin(stack: StandInStack, pipe: Pipe, agent: string): Promise<number> {
  const { server, device, home } = stack
  await device.whenWarm()
  const written = pipe.next()
  const sentAt = performance.now()
  const prompt = `bench${JSON.stringify({ at: join(home, 'begun') })}`
  const reply = server.call<{ runPublicId: string }>('POST', `/agents/${agent}/runs`, { prompt })
  const ms = (await written) - sentAt
  await stack.ended((await reply).runPublicId)
  return ms
}
