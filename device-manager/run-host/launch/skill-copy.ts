import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { OfferedSkill } from '../../../shared/runs/skills.ts'
import { belowFrontMatter, skillFileText } from '../../harness/parts/skill-file.ts'
import type { GivenSkill } from '../../harness/parts/skills.ts'
import { readKept, readList } from '../../skills/kept-bundle.ts'

export interface CopyOfSkill {
  /** Where the daemon keeps the files. */
  bundles: string
  target: string
  /** Where the copy is when a run has it; default the target. */
  folder?: string
  /** Hears of each file. */
  wrote?: (path: string, content: string | Uint8Array) => void
}

/**
 * Copies a skill without waiting: its files are many and small and lie in svc's own folder, so waiting for each would take longer than
 * reading and writing it at once. The processor is given back after each skill.
 */
export function copySkill(
  { slug: name, description, bundleHash }: OfferedSkill,
  { bundles, target, folder = target, wrote }: CopyOfSkill,
): GivenSkill {
  const files = readList(bundles, bundleHash)
  let body = ''
  const folders = new Set<string>()
  for (const file of files) {
    if (programSettings.has(file.path.toLowerCase())) continue
    const bytes = readKept(bundles, bundleHash, file)
    const path = join(target, file.path)
    if (!folders.has(dirname(path))) mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    folders.add(dirname(path))
    const content = isSkillFile(file.path) ? belowFrontMatter(textOf(bytes)) : bytes
    if (file.path === skillFileName) body = String(content)
    const whole = file.path === skillFileName ? skillFileText({ name, description, body }) : content
    writeFileSync(path, whole, { mode: file.executable ? 0o700 : 0o600 })
    wrote?.(path, whole)
  }
  return { name, description, body, folder, hasFiles: files.length > 1 }
}

const skillFileName = 'SKILL.md'
/** Agent programs look for skills in the folders of a skill, too; without front matter it is a text like others. */
const isSkillFile = (path: string): boolean => /(^|\/)skill\.md$/i.test(path)
/** codex reads from these which MCP servers a skill wants. */
const programSettings: ReadonlySet<string> = new Set(['agents/openai.yaml', 'agents/openai.yml', 'skill.json'])

function textOf(bytes: Uint8Array): string {
  return new TextDecoder('utf-8').decode(bytes)
}
