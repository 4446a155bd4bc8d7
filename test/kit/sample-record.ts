import { z } from 'zod'

// A record made of its schema, always the same, with what lists of people hold: long titles, wide characters, nothing at all.

/** ms */
export const sampleNow = Date.parse('2026-03-14T15:09:26.535Z')

const ids: Readonly<Record<string, string>> = {
  id: 'abc_3nB7cW1yHsD5jK9',
  key: 'SVC-12',
  handle: '@builder',
  email: 'ada@example.com',
  slug: 'release-notes',
  envVarName: 'GITHUB_TOKEN',
  costUsd: '0.4217',
  url: 'https://svc.example.com/a/b',
  cron: '0 9 * * 1-5',
  timezone: 'Europe/Berlin',
  sha256: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
  headSha: '3f2a9c1',
  commit: '3f2a9c1',
  branch: 'svc-12-log-in',
  path: 'src/pages/登录.ts',
  rootPath: '/home/ada/work/shop',
  contentType: 'text/markdown',
  platform: 'linux',
  model: 'opus',
  modelId: 'opus',
  backupModel: 'haiku',
  agentMdHash: '5d41402abc',
  sourceRef: 'docs/log-in.md',
  reportingTo: 'agt_8sK2mQ4vB7xN1pLc',
  sharedWith: 'run_3nB7cW1yHsD5jK9q',
  prefix: 'SHOP',
  issuePrefix: 'SHOP',
  repoUrl: 'https://git.example.com/shop.git',
  gitRemote: 'https://git.example.com/shop.git',
  repo: 'acme/shop',
  baseBranch: 'main',
  branchName: 'svc-12-log-in',
  defaultBranch: 'main',
  resolvedSha: '3f2a9c1',
  ref: 'v2',
  subdir: 'plugins/log-in',
  host: 'api.example.com',
  token: 'svc_share_0123456789',
  webhookUrl: 'https://svc.example.com/hooks/0123456789',
  workflow: 'triage',
  workflowRef: 'triage',
  schema: 'verdict',
  kind: 'tool_call',
  role: 'reviewer',
  errorCode: 'harness_failed',
  tool: 'Bash',
  pattern: 'git push:*',
  allow: 'Read',
  envKey: 'GITHUB_TOKEN',
  accountLabel: 'acme',
  author: 'ada',
  version: '1.4.2',
}
const sentences = [
  'Make the log-in page remember where people came from, also when they sign in with a second factor',
  '登录页面应该记住人们来自哪里 🚀',
  'Fix it',
]

export function sampleRecord(schema: z.ZodType, row: number, key = ''): unknown {
  if (schema instanceof z.ZodOptional)
    return row === 2 ? undefined : sampleRecord(schema.def.innerType as z.ZodType, row, key)
  if (schema instanceof z.ZodNullable)
    return row === 2 ? null : sampleRecord(schema.def.innerType as z.ZodType, row, key)
  if (schema instanceof z.ZodDefault) return sampleRecord(schema.def.innerType as z.ZodType, row, key)
  if (schema instanceof z.ZodPipe) return sampleRecord(schema.def.in as z.ZodType, row, key)
  if (schema instanceof z.ZodObject)
    return Object.fromEntries(
      Object.entries(schema.shape as Record<string, z.ZodType>).map(([name, inner]) => [
        name,
        sampleRecord(inner, row, name),
      ]),
    )
  if (schema instanceof z.ZodArray) {
    const element = schema.element as z.ZodType
    return row === 2 ? [] : [0, 1].map((at) => sampleRecord(element, at, key.replace(/s$/, '')))
  }
  if (schema instanceof z.ZodUnion)
    return sampleRecord(schema.options[row % schema.options.length] as z.ZodType, row, key)
  if (schema instanceof z.ZodLiteral) return [...schema.values][0]
  if (schema instanceof z.ZodEnum) return schema.options[row % schema.options.length]
  if (schema instanceof z.ZodBoolean) return row % 2 === 0
  if (schema instanceof z.ZodNumber) return numberFor(key, row)
  if (schema instanceof z.ZodRecord) return { model: 'opus', retries: 3 }
  if (schema instanceof z.ZodUnknown) return { answer: 42, of: ['everything'] }
  return textFor(key, row)
}

function numberFor(key: string, row: number): number {
  if (/bytes/i.test(key)) return [348, 1_234_567, 98_765_432_100][row]!
  return /cents/i.test(key) ? 1_250 * (row + 1) : 3 + row * 40
}

function textFor(key: string, row: number): string {
  if (/(?:At|Until|since)$/.test(key))
    return new Date(sampleNow - [180_000, 2 * 3_600_000, 40 * 86_400_000][row]!).toISOString()
  const known = ids[key]
  if (known !== undefined) return key === 'id' ? known + String(row) : known
  if (/(?:Id|Ref)$/.test(key)) return `${key.slice(0, 3)}_2bX7mR4kJ9sQ1wZ${row}`
  if (/name$/i.test(key)) return ['builder of the shop', '建筑工', 'x'][row]!
  if (/(?:Md|body|description|prompt|content|log|source|manifest)$/i.test(key))
    return `${sentences[row]!}\n\n- first\n- second\u001b[2J\n`
  return sentences[row]!
}
