import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc, { type Arbitrary } from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ToolPermissions } from '../../../shared/runs/spec.ts'
import { decide } from '../../../shared/permissions/decide.ts'
import { judgedPlace, plainReach } from '../../kit/judged-place.ts'

/** More lines than in the whole suite: `SVC_CALL_CHECK_LINES=50000 SVC_CALL_CHECK_SEED=7`. */
const lineCount = Number(process.env['SVC_CALL_CHECK_LINES'] ?? 150)
const seed = Number(process.env['SVC_CALL_CHECK_SEED'] ?? 1)

const place = judgedPlace()
function isForbidden(command: string): boolean {
  const call = { name: 'Bash', input: { command } }
  const permissions: ToolPermissions = { allow: [], ask: [], deny: ['Bash(mk:*)'], defaultMode: 'full' }
  return decide(permissions, place, { ...call, ...plainReach(call, place) }).decision === 'deny'
}

const marker = fc.constantFrom(
  'mk',
  String.raw`\mk`,
  `m''k`,
  `"mk"`,
  '$t',
  '"$t"',
  '{mk,x}',
  'm{k,x}',
  '{{mk,y},x}',
  '{,mk}',
  '{m,}{k,}',
  './mk',
  '../bin/m?',
  'm\\\nk',
  `$'\\x6dk'`,
  '`echo mk`',
  '$(echo mk)',
  '${t}',
  '${none:-mk}',
  '=mk',
  'm[k]',
)
/** Says what may stand before a program, or between it and its arguments. */
const between = fc.constantFrom(
  'A=1',
  `A='x y'`,
  'a[0 ]=1',
  'A=$(:)',
  'A=(1 2);',
  '2>&-',
  '<&-',
  '>&-',
  '>& -',
  '>-',
  '>o',
  '> o',
  '>|o',
  '2>&1',
  '&>o',
  '<>o',
  '{fd}>o',
  '<<<y',
  '<<< "a b"',
  `<<<$'x'`,
  '< <(:)',
  '> >(:)',
  '>&2',
  '&>>o',
  '3<&0',
  '!',
  'time',
  '\\\n',
  'timeout 5',
  'env',
  'env B=2',
  'command',
  'nice -n 1',
  'nohup',
  'exec',
  'setsid -w',
  'stdbuf -oL',
  'builtin command',
  'xargs -a /dev/null',
)
/** Says what may stand before a command in the line, and mislead whoever reads it. */
const ahead = fc.constantFrom(
  `# it's`,
  `: # "x`,
  `# x \\`,
  '# `$(',
  `: '#'`,
  ': "#" #"',
  `: \\'`,
  ': \\"',
  `: "'"`,
  `: '"'`,
  `: $'\\''`,
  `: "a\\"b"`,
  ': \\#',
  `: <<E\nit's\nE`,
  `: <<'E'\n$(\n"\nE`,
  ': <<-E\n\t"\n\tE',
  `: <<E <<F\n'\nE\n"\nF`,
  `: <<E\n\\\nE\nE`,
  ': $(cat <<E\n)\nE\n)',
  ': $((1<<2))',
  '((1<<E))\nE',
  `: "\${t#'}"`,
  ': ${t#"}"}',
  `: "\${t:-'}"`,
  `: \${t:-'}'}`,
  `: "$(: '"')"`,
  ': $(: ")")',
  ': $(: \\))',
  `: $(# it's\n)`,
  ': $(case x in x) :;; esac)',
  'case x in x) ;; esac',
  `case "'" in x) ;; esac`,
  '[[ a < b ]]',
  '[[ a =~ (b)# ]]',
  ': {a,b',
  ': a}',
  ': ( ',
  ': )',
  '(',
  ')',
  '{ :',
  '}',
  'f() { :; }',
  'if :',
  'then :',
  'fi',
  `: a\r# '`,
  `: ';`,
  ': "${t:-"}"}"',
  ': `echo "\\`"`',
  `: \`: '\``,
  ': "`: \\"`"',
  'a[1<<E]=1',
  'E',
  `'`,
  `"`,
  ': $[1<<E]',
  `: <<"E F"\n'\nE F`,
  ': "$\\\n(: \')"',
  ': $\\\n{t}',
  ': ${#t}',
  ': $#',
  `: $# '`,
  ': a#b',
  `: a"#"'`,
  `: ""# '`,
  ': ${t}# "',
  `: $(:)# '`,
  `:;# '`,
)
const separator = fc.constantFrom('; ', '\n', ' && ', ' || ', ' | ', ' & ', '\n\n', ' ;\n', ' ', '\r\n')

const quoted = (line: string) => `'${line.replaceAll("'", String.raw`'\''`)}'`
const around: readonly ((line: string) => string)[] = [
  (line) => `{ ${line}; }`,
  (line) => `{ ${line}\n}`,
  (line) => `(${line})`,
  (line) => `(${line}\n)`,
  (line) => `: $(${line})`,
  (line) => `: $(${line}\n)`,
  (line) => `: "$(${line}\n)"`,
  (line) => `: "a\${none:-$(${line}\n)}'"`,
  (line) => `: <(${line}\n); wait`,
  (line) => `: \`${line.replaceAll(/[\\`$]/g, String.raw`\$&`)}\``,
  (line) => `: "\`${line.replaceAll(/[\\`$"]/g, String.raw`\$&`)}\`"`,
  (line) => `eval ${quoted(line)}`,
  (line) => `sh -c ${quoted(line)}`,
  (line) => `bash -c "${line.replaceAll(/["\\$`]/g, String.raw`\$&`)}"`,
  (line) => `bash <<'E'\n${line}\nE`,
  (line) => `bash <<E\n${line.replaceAll(/[\\$`]/g, String.raw`\$&`)}\nE`,
  (line) => `bash <<< ${quoted(line)}`,
  (line) => `: <<E\n$(${line}\n)\nE`,
  (line) => `if ${line}\nthen :; fi`,
  (line) => `for i in 1; do ${line}\ndone`,
  (line) => `case x in x) ${line};; esac`,
  (line) => `: $(case x in (x) ${line};; esac)`,
  (line) => `: $(case x in x) ${line};; esac)`,
  (line) => `f() { ${line}\n}; f`,
  (line) => `coproc { ${line}\n}; wait`,
  (line) => `shopt -s expand_aliases\nalias q=${quoted(line)}\nq`,
  (line) => `trap ${quoted(line)} EXIT`,
  (line) => `a[$(${line}\n)0]=1`,
  (line) => `: $(( $(${line}\n) 1 ))`,
]

const program: Arbitrary<string> = fc
  .tuple(fc.array(between, { maxLength: 3 }), marker, fc.array(between, { maxLength: 1 }))
  .map(([before, name, after]) => [...before, name, ...after, 'x'].join(' '))
const statements = (inner: Arbitrary<string>): Arbitrary<string> =>
  fc
    .tuple(
      fc.array(fc.tuple(ahead, separator), { maxLength: 3 }),
      inner,
      fc.array(fc.tuple(separator, ahead), { maxLength: 1 }),
    )
    .map(([before, one, after]) => [...before.flat(), one, ...after.flat()].join(''))
const wrapped = (inner: Arbitrary<string>): Arbitrary<string> =>
  fc.tuple(fc.constantFrom(...around), inner).map(([wrap, line]) => wrap(line))
const line = fc.oneof(
  statements(program),
  statements(wrapped(statements(program))),
  wrapped(wrapped(statements(program))),
)

let dir: string
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'svc-call-check-bash-'))
})
afterAll(() => rmSync(dir, { recursive: true, force: true }))

/** Answers of each line whether bash runs `mk` by it. */
function ranBy(lines: readonly string[]): boolean[] {
  mkdirSync(join(dir, 'bin'), { recursive: true })
  writeFileSync(join(dir, 'bin', 'mk'), '#!/bin/sh\n: > ran\n', { mode: 0o755 })
  const folders = lines.map((text, at) => {
    const folder = join(dir, String(at))
    mkdirSync(folder)
    writeFileSync(join(folder, 'line'), text)
    return folder
  })
  const each = `for d in [0-9]*; do
    ( cd "$d"; PATH="$BIN:$PATH"; line=$(<line); eval "$line"; wait ) </dev/null >/dev/null 2>&1
  done`
  const env = { PATH: process.env['PATH'], BIN: join(dir, 'bin'), t: 'mk', FUNCNEST: '20', LC_ALL: 'C.UTF-8' }
  execFileSync('bash', ['-c', each], { cwd: dir, env, stdio: 'ignore', timeout: 100_000 + lineCount * 20 })
  const ran = folders.map((folder) => existsSync(join(folder, 'ran')))
  for (const folder of folders) rmSync(folder, { recursive: true })
  return ran
}

test('whatever bash runs is forbidden by the rule about it', { timeout: 120_000 + lineCount * 30 }, () => {
  const lines = fc.sample(line, { numRuns: lineCount, seed }).map((text) => text.replace(/\n+$/, ''))
  const ran = ranBy(lines)
  const missed = lines.filter((text, at) => ran[at] && !isForbidden(text))
  if (process.env['SVC_CALL_CHECK_LINES']) console.log(ran.filter(Boolean).length, 'of', lines.length, 'ran')
  expect(missed.toSorted((a, b) => a.length - b.length).slice(0, 20)).toEqual([])
  // Lines that bash refuses prove nothing.
  expect(ran.filter(Boolean).length).toBeGreaterThan(lines.length / 5)
})
