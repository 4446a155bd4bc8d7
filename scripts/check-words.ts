import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { misformedRecord } from './adr-form.ts'
import { askedPlace } from './asked-places.ts'
import { castToId, castToTransaction } from './casts.ts'
import { longLine } from './long-lines.ts'
import { strayDocComment } from './stray-doc-comments.ts'
import { waitBesideHandles } from './waits-beside-handles.ts'

/**
 * Checks the text of tracked files: no host name of a package registry, no focused or silently skipped test, no module
 * mock, no clock or chance except through World, no source file of 350 lines or more, no long
 * line on a page, and no page of docs that the README does not name.
 */
const root = join(import.meta.dirname, '..')
const files = execFileSync('git', ['ls-files', '-z'], { cwd: root, encoding: 'utf8' }).split('\0').filter(Boolean)
const problems: string[] = []

interface Rule {
  files: RegExp
  except?: RegExp
  pattern: RegExp | ((text: string) => number)
  why: string
}
const rules: Rule[] = [
  {
    files: /./,
    except: /\.jsonl$/,
    pattern: /\b(?:registry|deb|security|mirror)\.[a-z]+\.(?:org|com)\b/,
    why: 'names a registry host',
  },
  { files: /package-lock\.json$/, pattern: /"resolved":/, why: 'the lockfile holds addresses' },
  {
    files: /\.test\.ts$/,
    pattern: /\b(?:it|test|describe)\.(?:only|skip|todo)\b|\bx(?:it|describe)\(/,
    why: 'a focused or skipped test',
  },
  {
    files: /\.test\.ts$/,
    pattern: /\bvi\.(?:mock|stubGlobal|stubEnv)\b/,
    why: 'fakes our own code instead of the other end of the wire',
  },
  {
    files: /^(?:control-plane|device-manager|shared)\/.*\.ts$/,
    // The plugin is the text of a program that runs elsewhere.
    except: /\.test\.ts$|world\.ts$|opencode\/plugin\.ts$/,
    pattern: /\bDate\.now\(\)|\bnew Date\(\)|\bMath\.random\(\)/,
    why: 'reads the clock or chance directly; take World',
  },
  {
    files: /\.(?:ts|md)$|^scripts\//,
    except: /check-words\.ts$/,
    pattern: /\b(?:TODO|FIXME|XXX|HACK)\b/,
    why: 'words of unfinished work',
  },
  {
    files: /^(?:cli|control-plane|device-manager|shared)\/.*\.ts$/,
    except: /^shared\/lib\/(?:ids|id-schema)\.ts$/,
    pattern: castToId,
    why: 'makes an id of a text; columns, schemas, world.id and idFrom do',
  },
  {
    files: /^control-plane\/.*\.ts$/,
    // The clients of the databases see by knex's own marks which one a handle is.
    except: /^control-plane\/db\/(?:postgres|sqlite)-client\.ts$/,
    pattern: castToTransaction,
    why: 'says that a handle is a transaction; whoever needs one takes Tx',
  },
  {
    files: /^control-plane\/.*\.ts$/,
    // Sandboxes themselves, and whose machine a row of a device is.
    except:
      /^control-plane\/(?:run\/places|sandbox|resources\/sandboxes)\/|^control-plane\/(?:cloud|resources\/devices\/rules)\.ts$|\.test\.ts$/,
    pattern: askedPlace,
    why: 'asks which place a run has; RunPlace of control-plane/run/places answers what follows from it',
  },
  {
    files: /^control-plane\/.*\.ts$/,
    // What both are made of.
    except: /\.test\.ts$|^control-plane\/db\/(?:one-trip|transaction)\.ts$/,
    pattern: waitBesideHandles,
    why: 'waits for promises together beside handles of the database; take inOneTrip',
  },
  {
    files: /\.ts$/,
    pattern: strayDocComment,
    why: 'has a doc comment that stands on nothing; put it on what it describes, or at the head of the file in //',
  },
  {
    files: /^docs\/adr\/\d{4}-/,
    pattern: misformedRecord,
    why: 'has not the form of a decision record: number, status with date, Context, Decision, Consequences',
  },
  {
    files: /^(?:README|docs\/[^/]+)\.md$/,
    pattern: longLine,
    why: 'has a line, or a cell of a table, of more than 140 characters; break it, or say it below the table',
  },
]
const maxLines = 350

for (const file of files) {
  if (/\.(?:png|db|bin|gz)$/.test(file)) continue
  let text: string
  try {
    text = readFileSync(join(root, file), 'utf8')
  } catch {
    continue
  }
  for (const rule of rules) {
    if (!rule.files.test(file) || rule.except?.test(file)) continue
    const { pattern } = rule
    const line = pattern instanceof RegExp ? text.split('\n').findIndex((each) => pattern.test(each)) : pattern(text)
    if (line >= 0) problems.push(`${file}:${line + 1}: ${rule.why}`)
  }
  const lines = text.split('\n').length
  if (file.endsWith('.ts') && !file.endsWith('.test.ts') && lines > maxLines)
    problems.push(`${file}: ${lines} lines; split it by role`)
}

const readme = readFileSync(join(root, 'README.md'), 'utf8')
for (const file of files)
  if (/^docs\/[^/]+\.md$/.test(file) && !readme.includes(`](${file})`))
    problems.push(`${file}: the README does not name it`)

if (problems.length > 0) {
  process.stderr.write(`${problems.join('\n')}\n${problems.length} problem(s)\n`)
  process.exit(1)
}
