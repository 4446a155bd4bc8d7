import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { inputFrom } from '../../cli/flows/permissions-check-call.ts'
import { linksNowhere } from '../../cli/machine/links.ts'
import { realWorld } from '../lib/world.ts'
import { toolPermissionModes, type ToolPermissions } from '../runs/spec.ts'
import { explain, type Explanation } from './explain.ts'
import { PathLookup } from './path-lookup.ts'
import { reachOf } from './reach.ts'
import { runnerNames } from './shell/runners.ts'

// The engine answers what docs/permissions.md says of rules and calls.

const page = readFileSync(join(import.meta.dirname, '../../docs/permissions.md'), 'utf8')

interface Example {
  permissions: ToolPermissions
  tool: string
  input: string
  said: string
}

/** Reads the blocks of the page: a mode, rules, and calls with their answers. Fails at a line that it cannot read. */
function examplesOf(markdown: string): Example[] {
  const blocks = [...markdown.matchAll(/^```permissions\n(.*?)^```$/gms)].map(([, block]) => block!)
  return blocks.flatMap((block) => {
    const permissions: ToolPermissions = { allow: [], ask: [], deny: [], defaultMode: 'full' }
    const examples: Example[] = []
    const [first = '', ...lines] = block.trimEnd().split('\n')
    const mode = toolPermissionModes.find((name) => first === `mode ${name}`)
    if (mode === undefined) throw new Error(`no mode: ${first}`)
    permissions.defaultMode = mode
    for (const line of lines) {
      const rule = /^(allow|ask|deny)\s+(\S.*)$/.exec(line)
      const call = /^(\w+)(?:\s+(\S.*?))?\s+-> ((?:allow|ask|deny) by \S.*)$/.exec(line)
      if (rule) permissions[rule[1] as 'allow' | 'ask' | 'deny'].push(rule[2]!)
      else if (call) examples.push({ permissions, tool: call[1]!, input: call[2] ?? '', said: call[3]! })
      else throw new Error(`no rule and no call: ${line}`)
    }
    if (examples.length === 0) throw new Error(`a block without a call: ${block}`)
    return examples
  })
}

const causeOf = ({ by, rule }: Explanation) => (by === 'rule' ? rule : by)

async function answerTo({ permissions, tool, input }: Example): Promise<string> {
  const call = { name: tool, input: inputFrom(tool, input) ?? {} }
  const lookup = new PathLookup(realWorld, linksNowhere)
  const facts = { cwd: '/srv/app', homeDir: '/home/ada', ownFolders: [], svcProgram: '/opt/svc/bin/svc' }
  const place = await lookup.placeOf({ ...facts, permissions })
  const reach = await reachOf(call, { permissions, place, lookup })
  const explained = explain(permissions, place, { ...call, ...reach })
  return `${explained.answer} by ${causeOf(explained)}`
}

const examples = examplesOf(page)

test('the page has examples, and all of its blocks are read', () => {
  expect(examples.length).toBeGreaterThan(50)
  expect(page.match(/^```permissions/gm)).toHaveLength(new Set(examples.map(({ permissions }) => permissions)).size)
})

test.each(examples)('$permissions.defaultMode: $tool $input -> $said', async (example) => {
  expect(await answerTo(example)).toBe(example.said)
})

test('the page names every program that is known to run another one, and no other', () => {
  const [, block = ''] = /^```text\n(.*?)^```$/ms.exec(page) ?? []
  const named = block.split(',').map((name) => name.trim().replaceAll(/\s+/g, ' '))
  expect(named.filter((name) => name !== '').toSorted()).toEqual(runnerNames().toSorted())
})

test('a page that says something else would be seen', async () => {
  const [wrong] = examplesOf('```permissions\nmode full\ndeny Bash(rm:*)\nBash rm x -> allow by mode\n```')
  expect(await answerTo(wrong!)).toBe('deny by Bash(rm:*)')
  expect(() => examplesOf('```permissions\nmode full\nBash rm x => deny\n```')).toThrow('no rule and no call')
})
