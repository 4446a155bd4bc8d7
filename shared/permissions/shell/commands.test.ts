import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { ToolPermissions, ToolRule } from '../../runs/spec.ts'
import { judgedPlace, plainReach } from '../../../test/kit/judged-place.ts'
import { decide } from '../decide.ts'
import { maxCommandChars, shellCommands } from './commands.ts'
import { cpuMsOf } from '../../../test/kit/cpu-time.ts'

const place = judgedPlace()
function decided(lists: { allow?: ToolRule[]; deny?: ToolRule[] }, command: string) {
  const call = { name: 'Bash', input: { command } }
  const permissions: ToolPermissions = {
    allow: [],
    ask: [],
    deny: [],
    defaultMode: lists.deny ? 'full' : 'strict',
    ...lists,
  }
  return decide(permissions, place, { ...call, ...plainReach(call, place) }).decision
}
const denies = (rule: string, command: string) => decided({ deny: [rule] }, command) === 'deny'

describe('Bash(rm:*) denies', () => {
  test.for([
    String.raw`\rm x`,
    String.raw`r\m x`,
    `r''m x`,
    `"r"m x`,
    `'rm' x`,
    `/bin/'rm' x`,
    String.raw`$'rm' x`,
    String.raw`$'\x72\155' x`,
    String.raw`$'\u0072m' x`,
    `$"rm" x`,
    'r\\\nm x',
    'rm\tx',
    'RM x',
    '\u{17f}udo rm x',
    'timeout 5 rm x',
    'timeout -k 1 --signal=KILL 5s rm x',
    'nice -n 19 rm x',
    'nice rm x',
    'ls | xargs rm',
    'ls | xargs -0 -n 1 -I {} rm {}',
    'sudo -u bob rm x',
    'sudo -u bob -- rm x',
    'doas -u bob rm x',
    'env -i A=1 rm x',
    'env -S "rm x"',
    String.raw`env -Srm\ x`,
    'nohup rm x &',
    'stdbuf -oL rm x',
    'setsid -f rm x',
    'ionice -c 3 rm x',
    'command rm x',
    'command -p rm x',
    'builtin command rm x',
    'exec -a ls rm x',
    'time -p rm x',
    'watch -n 1 rm x',
    'find . -name x -exec rm {} +',
    `find . -exec 'rm' '{}' ';'`,
    `sh -c 'rm x'`,
    `bash -lc "cd a && rm x"`,
    `bash -c 'sh -c "rm x"'`,
    `sudo bash -c "timeout 5 sh -c 'nice rm x'"`,
    String.raw`bash -c rm\ x`,
    'eval rm x',
    'eval "r" "m x"; eval "rm x"',
    'parallel rm ::: a b',
    'busybox rm x',
    'A=1 B=2 rm x',
    'A="x y" rm x',
    'a[0]=1 rm x',
    '>o rm x',
    '> o rm x',
    '2>/dev/null rm x',
    '2>&1 rm x',
    '&>o rm x',
    '<in >>out rm x',
    '{fd}>o rm x',
    'ls >o; rm x',
    '{ rm x; }',
    '(rm x)',
    '( cd a; (rm x) )',
    'f() { rm x; }; f',
    'function f { rm x; }',
    'echo $(rm x)',
    'echo "a $(rm x) b"',
    'echo "$("rm" x)"',
    'echo `rm x`',
    'echo "`rm x`"',
    'cat <(rm x)',
    'ls > >(rm x)',
    'echo ${a:-$(rm x)}',
    'echo $(( $(rm x) ))',
    '{rm,-rf,x}',
    'r{m,x} y',
    '{r..r}m x',
    '/bin/r? x',
    '/bin/[r]m x',
    '/bin/*m x',
    'a=rm; $a x',
    'r${nothing}m x',
    'rm$IFS-rf${IFS}x',
    '$(echo rm) x',
    '$(printf r)m x',
    '`echo rm` x',
    '"$tool" x',
    'if true; then rm x; fi',
    'while ! rm x; do :; done',
    'for f in *; do rm $f; done',
    'case x in x) rm x;; esac',
    'true && rm x',
    'true || rm x',
    'true & rm x',
    'true |& rm x',
    'bash <<EOF\nrm x\nEOF',
    `cat <<EOF\nit's\nEOF\nrm x`,
    `sh <<< 'rm x'`,
    'sh <<< rm',
    `echo 'rm x' | sh`,
    `awk 'BEGIN { system("rm x") }'`,
    `python3 -c "import os; os.system('rm x')"`,
    `trap 'rm x' EXIT`,
    `git -c alias.x='!rm y' x`,
    `# it's\nrm x`,
    `sudo ${'-n '.repeat(100)}rm x`,
    '2>&- rm x',
    '<&- rm x',
    '>&-rm x',
    '>& -rm x',
    '>- rm x',
    '>| o rm x',
    '>! o rm x',
    '&>o rm x',
    '<<<y rm x',
    '<<< "$y" rm x',
    'git &\\\n>o push; rm x',
    '{{rm,-rf},x}',
    '{r,}{m,} x',
    '{,rm} x',
    '{r{m,x},y} z',
    'timeout {a{b,c},rm} x',
    String.raw`{rm,"}"}`,
    String.raw`{r\,,}m x`,
    "t=rm # it's\n$t x",
    "t=rm; cat <<EOF\nit's\nEOF\n$t x",
    "t=rm; cat <<'EOF' | cat <<-B\nit's\nEOF\n\t\"\n\tB\n$t x",
    't=rm; ((1 <<E))\n$t x\nE',
    't=rm; a[1<<E]=1\n$t x\nE',
    't=rm bash <<EOF\n\\$t x\nEOF',
    't=rm; cat <<EOF\n$($t x)\nEOF',
    't=rm; cat <<EOF\na\\\nEOF\n$t x',
    "# x't \\\n\\rm y",
    "echo a\r# '\n '; $t x #'",
    String.raw`echo $(case x in x) \rm y;; esac)`,
    't=rm; echo "$($t x)"',
    't=rm; echo "${a:-$($t x)}"',
    "t=rm; echo $(echo # it's\n) \n $t x",
    "a[$(r''m x)]=1",
    'a[$($t x)]=1',
    'a[0 ]=1 rm x',
    "t=rm; sh -c '$t'",
    "t=rm; eval '$t' x",
    `$${'a'.repeat(200)} x`,
    '$=t x',
    '"$\\\n(r""m x)"',
    'noglob rm x',
    'nocorrect rm x',
    '- rm x',
    'repeat 3 rm x',
    '=rm x',
    '/bin/r(m) x',
    'if [[ -n x ]] rm x',
    '{ ls } always { rm x }',
    'setpriv rm x',
    '/lib64/ld-linux-x86-64.so.2 /bin/rm x',
    'alias a=rm\na x',
    "alias a='rm -f'; a x",
    'BASH_ALIASES[a]=rm; a x',
    'hash -p /bin/rm a; a x',
    `echo ${'$('.repeat(70)}rm x${')'.repeat(70)}`,
    String.raw`$'\x{72}m' x`,
    String.raw`$'\562m' x`,
    String.raw`$'rm\0foo' x`,
    String.raw`$'rm\c@'foo x`,
    'rm${IF\\\nS}x',
    'npx rm x',
    'npm exec -- rm x',
    'git bisect run rm x',
    'docker exec box rm x',
    'tmux new rm x',
    'ssh localhost rm x',
    'runIt() { "$@"; }; runIt rm x',
    'function run { $1 $2; }; run rm x',
    `tar xf a.tar '--to-command=rm x'`,
    String.raw`tar xf a.tar --to-command=rm\ x`,
    `git -c "core.pager=rm x" log`,
    `git -c 'alias.x=!rm y' x`,
    `vim -c ':!rm x'`,
    `socat - 'EXEC:rm x'`,
  ])('%s', (command) => expect(denies('Bash(rm:*)', command)).toBe(true))
})

describe('and leaves', () => {
  test.for([
    'ls',
    'rmdir x',
    'echo farm rm',
    'npm run rm-cache',
    'git rm x',
    './rm-old.sh',
    '$HOME/bin/tool x',
    '"$(npm bin)"/eslint .',
    'grep -rn "farm" src | head -5',
    `printf '%s\\n' "$a"`,
    'A=1 npm test > out.txt 2>&1',
    'echo > rm',
    '[ -e rm ] && ls',
    `git commit -m "It's done (see #4)"`,
    `git commit -m "$(cat <<'EOF'\nDon't use $x (or \`y\`)\n\n- it's {a,b}\nEOF\n)"`,
    `cat > a.md <<'EOF'\n# It's here\n\n$x y\nEOF\nls`,
    `cat <<EOF >> a.md\nIt's "$HOME"\nEOF`,
    `timeout 60 git commit -m "fix(core): don't fail"`,
    '# rm it\nls # and rm that',
    "ls # it's here\npwd",
    'echo $((1 + 2)) $(( (a + b) - 2 )); ((i++))',
    'for ((i = 0; i < 3; i++)); do echo "$i"; done',
    `curl -d '{"a": 1, "b": [2, 3]}' -H "X: {a,b}" http://x`,
    'mkdir -p src/{a,b/{c,d}}/test && touch {x,y}.{ts,md}',
    'cp a.{ts,js}; echo "${x:-y}" ${#x} ${x%.*} ${x//a/b} "${a[@]}"',
    `awk '{ print $1 }' file | sed -e 's/a{2,3}/b/g'`,
    '[[ $x =~ ^(a|b)+$ ]] && echo yes',
    'a=(1 2 3); echo "${a[0]}"; f() { ls; }; f',
    'case $x in a) ls;; b | c) pwd;; esac',
    'while read -r x; do echo "$x"; done < <(ls)',
    'ls 2>&1 >/dev/null | tee out.txt; ls &>o; exec 3>&-',
    'find . -name "*.ts" -not -path "./node_modules/*" | xargs grep -l "x"',
    'git log --format="%h %s" -n 5 -- src\\a',
    'npm test \\\n  -- --run &&\\\n  ls',
    'ls\r\npwd\r\n',
    `python3 - <<'EOF'\nimport os\nprint("it's", {1, 2})\nEOF`,
    `jq -r '.a[] | select(.b == "c")' x.json`,
    'echo "$(date +%s)" `date` "a `date` b"',
    String.raw`find . -print0 | while IFS= read -r -d $'\0' f; do echo "$f"; done`,
    String.raw`printf $'a\tb\x41\101\n'`,
    'npm run build -- --x=rm && docker run --rm img ls && npm exec tsc',
    'f() { ls "$@"; }; f a; set -euo pipefail',
    `git commit -m "Done! It works = well" --author='A: B'`,
  ])('%s', (command) => expect(denies('Bash(rm:*)', command)).toBe(false))
})

test('a rule with arguments holds behind wrappers, too', () => {
  for (const command of ['timeout 9 git push -f', `g'i't push`, 'x=1 git push', '>o git push', '$(echo git) push'])
    expect(denies('Bash(git push:*)', command), command).toBe(true)
  for (const command of [
    'set -- git push; "$@"',
    'run() { "$@"; }; run git push',
    String.raw`env -S 'git\_push'`,
    String.raw`timeout 5 env '-Sgit\tpush'`,
    `vim -c ':r !git push'`,
    'git${IF\\\nS}push',
  ])
    expect(denies('Bash(git push:*)', command), command).toBe(true)
  for (const command of ['git status', '$tool status', 'timeout 9 git pull'])
    expect(denies('Bash(git push:*)', command), command).toBe(false)
})

test('a rule that names a program by its path holds however that is spelt, and behind wrappers', () => {
  for (const command of [
    './deploy.sh x',
    'timeout 5 ./deploy.sh x',
    'A=1 ./deploy.sh',
    './"deploy".sh',
    'sh deploy.sh',
    '/srv/app/deploy.sh',
  ])
    expect(denies('Bash(./deploy.sh:*)', command), command).toBe(true)
  expect(denies('Bash(/usr/bin/git push:*)', 'timeout 5 git push')).toBe(true)
  expect(denies('Bash(*/git push:*)', 'g""it push')).toBe(true)
  for (const command of ['./build.sh', 'ls deploy.sh', 'git pull'])
    expect(denies('Bash(./deploy.sh:*)', command), command).toBe(false)
})

test.for([
  [{ command: 'git', args: ['push'] }, 'run(git:*)'],
  [{ commands: ['git status', 'git push'] }, 'run(git status:*)'],
  [{ command: ['git status', 'git push'] }, 'run(git status:*)'],
  [{ command: 'git status', command_line: 'git push' }, 'run(git status:*)'],
  [{ command: 'git', args: ['push'] }, 'run(git)'],
] as const)('what a tool is told in an unusual shape is judged: %j', ([input, wide]) => {
  const judge = (change: object) => {
    const call = { name: 'run', input }
    const lists: ToolPermissions = { allow: [], ask: [], deny: [], defaultMode: 'full', ...change }
    return decide(lists, place, { ...call, ...plainReach(call, place) }).decision
  }
  expect(judge({ deny: ['run(git push:*)'] })).toBe('deny')
  const isWhole = wide === 'run(git:*)'
  expect(judge({ allow: [wide], defaultMode: 'strict' })).toBe(isWhole ? 'allow' : 'deny')
})

test.for([
  [{ source: '.env', destination: 'src/x' }, 'move(.env)', 'move(src/**)'],
  [{ from: '.env', to: 'src/x' }, 'move(.env)', 'move(src/**)'],
  [{ path: 'src/x', name: '.env' }, 'move(.env)', 'move(src/**)'],
  [{ url: 'https://good.test', link: 'https://evil.test' }, 'move(domain:evil.test)', 'move(domain:good.test)'],
  [{ url: 'https://good.test', text: 'evil' }, 'move(evil)', null],
] as const)('fields of a tool that svc does not know hold paths and addresses: %j', ([input, deny, allow]) => {
  const judge = (change: object) => {
    const call = { name: 'move', input }
    const lists: ToolPermissions = { allow: [], ask: [], deny: [], defaultMode: 'full', ...change }
    return decide(lists, place, { ...call, ...plainReach(call, place) }).decision
  }
  expect(judge({ deny: [deny] })).toBe('deny')
  if (allow !== null) expect(judge({ allow: [allow], defaultMode: 'strict' })).toBe('deny')
})

test('a text that a tool writes is no command for a rule about its paths', () => {
  const call = { name: 'write', input: { path: 'a', content: ".env\n$CC it's" } }
  const lists: ToolPermissions = { allow: [], ask: [], deny: ['write(.env)'], defaultMode: 'full' }
  expect(decide(lists, place, { ...call, ...plainReach(call, place) }).decision).toBe('allow')
})

test('every command among the fields of a call is judged', () => {
  const call = { name: 'run', input: { command: 'ls', cmd: 'rm x', steps: [{ script: 'ls' }] } }
  const judge = (change: object) =>
    decide({ allow: [], ask: [], deny: [], defaultMode: 'full', ...change }, place, {
      ...call,
      ...plainReach(call, place),
    }).decision
  expect(judge({ deny: ['run(rm:*)'] })).toBe('deny')
  expect(judge({ allow: ['run(ls)'], defaultMode: 'strict' })).toBe('deny')
  expect(judge({ allow: ['run(ls)', 'run(rm x)'], defaultMode: 'strict' })).toBe('deny')
})

test.for(["git log # it's\nrm -rf x # '", "git log #'\nrm x\n#'", 'git log # rm', 'git\t#\nrm x'])(
  'a comment hides nothing from a rule that allows: %s',
  (command) => expect(decided({ allow: ['Bash(git *)'] }, command)).toBe('deny'),
)

/** Ways to put a command into another one; each makes of a line a line that runs it. */
const around: readonly ((line: string) => string)[] = [
  (line) => `timeout 5 ${line}`,
  (line) => `nice -n 3 ${line}`,
  (line) => `env A=1 ${line}`,
  (line) => `A='x y' ${line}`,
  (line) => `sudo -u bob ${line}`,
  (line) => `>out ${line}`,
  (line) => `2>&1 ${line}`,
  (line) => `{ ${line}; }`,
  (line) => `(${line})`,
  (line) => `echo $(${line})`,
  (line) => `cat <(${line})`,
  (line) => `true && ${line}`,
  (line) => `if ${line}; then :; fi`,
  (line) => `! ${line}`,
  (line) => `: ; ${line} &`,
  (line) => `sh -c '${line.replaceAll("'", String.raw`'\''`)}'`,
  (line) => `bash -lc "${line.replaceAll(/["\\$`]/g, String.raw`\$&`)}"`,
  (line) => `eval '${line.replaceAll("'", String.raw`'\''`)}'`,
]
const spelt = ['rm x', String.raw`\rm x`, `r''m x`, '/bin/rm x', '"rm" x', '$rm x', 'r\\\nm x'] as const

test.for([
  ['a command that can only begin otherwise', 'git$X status'],
  ['lines within quotes', 'echo "a\nb"'],
] as const)('Bash(rm:*) does not deny %s', ([, command]) => {
  expect(denies('Bash(rm:*)', command)).toBe(false)
})

test.for([
  ['a number that is no character', String.raw`r$'\U00110000'm x`],
  ['a line that is too long to be taken apart', `echo ${'x'.repeat(maxCommandChars)}`],
  ['a word whose braces make too many characters', `{${'x'.repeat(40_000)},${'y'.repeat(40_000)}}`],
] as const)('Bash(rm:*) denies %s', ([, command]) => {
  expect(denies('Bash(rm:*)', command)).toBe(true)
})

test('what is denied stays so in whatever it is wrapped', () => {
  const wraps = fc.array(fc.constantFrom(...around), { maxLength: 5 })
  fc.assert(
    fc.property(fc.constantFrom(...spelt), wraps, (command, layers) => {
      const line = layers.reduce<string>((inner, wrap) => wrap(inner), command)
      if (!denies('Bash(rm:*)', line)) throw new Error(line)
    }),
    { numRuns: 1_000 },
  )
})

test('junk is taken apart without an error, and what may be run is never more allowed by it', () => {
  const piece = fc.constantFrom(
    ...`'"\`$(){}[]<>|&;\\#!*?~=, \n\trm x$'\${IFS}$(-c sudo eval {a,b} <<EOF`.split(/(?<=.)/),
  )
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 60 }), (pieces) => {
      const line = pieces.join('')
      shellCommands(line)
      decided({ allow: ['Bash(git *)'] }, line)
      if (decided({ allow: ['Bash(git *)'] }, `${line}; rm x`) === 'allow') throw new Error(line)
    }),
    { numRuns: 2_000 },
  )
})

test.for([
  ['words', 'a '],
  ['wrappers', 'sudo '],
  ['shells', "sh -c '"],
  ['quotes', `"'`],
  ['substitutions', '$('],
  ['closed ones', '$(a)'],
  ['backticks', '`'],
  ['braces', '{a,'],
  ['brackets', '['],
  ['escapes', '\\ '],
  ['redirections', '>a '],
  ['separators', 'a;'],
  ['texts', '"a b" '],
  ['comments', "#'\n"],
  ['here-documents', '<<a '],
  ['closed here-documents', '<<a\na\n'],
  ['here-strings', '<<<a '],
  ['nested braces', '{{a,b},'],
  ['open braces', '{'],
  ['braces in turn', '{a,b}'],
  ['braces of words', '{a,b} '],
  ['quoted substitutions', '"$('],
  ['expansions', '${a:-'],
  ['quoted expansions', '"${a:-'],
  ['cases', '$(case a in a) '],
  ['subscripts', 'a['],
  ['arithmetic', '(('],
  ['both redirected', '&>a b '],
  ['evaluations', 'eval '],
  ['aliases', 'alias a=b '],
  ['variables', '$a'],
  ['closings', '} '],
  ['line ends', '\\\n'],
  ['different texts', null],
] as const)('a long line of %s is judged fast', ([, piece]) => {
  const filled = (chars: number) =>
    piece === null
      ? Array.from({ length: chars / 12 }, (_, at) => `"x ${at}"`).join(' ')
      : piece.repeat(Math.ceil(chars / piece.length)).slice(0, chars)
  // The time of this thread on the processor, since other tests run beside this one.
  const cost = (line: string) => cpuMsOf(() => denies('Bash(rm:*)', line))
  const costs = (lines: readonly string[]) => lines.reduce((sum, line) => sum + cost(line), 0)
  // A line costs about what sixteen of a sixteenth do; it would be sixteen times as much if each part were looked at with all others. The
  // clock of a thread may count in steps of 4 ms, and the machine may be slower in one moment than in the next: both are measured one
  // after the other, and again while the line costs too much.
  const line = filled(maxCommandChars)
  const few = Array<string>(16).fill(filled(maxCommandChars / 16))
  const long = filled(1024 * 1024)
  const rounds: { of: string; most: number; cost: number }[] = []
  const isFast = (of: string, cost: number, most: number) => {
    rounds.push({ of, cost, most })
    return cost < most
  }
  const everFast = (round: () => boolean) => Array.from({ length: 8 }).some(round)
  // The first time takes longer, as nothing is compiled yet.
  costs(few)
  expect(
    everFast(() => isFast('line', cost(line), 5 * costs(few) + 50)),
    JSON.stringify(rounds),
  ).toBe(true)
  expect(
    everFast(() => isFast('long', cost(long), 50)),
    JSON.stringify(rounds),
  ).toBe(true)
  expect(denies('Bash(rm:*)', long)).toBe(true)
})
