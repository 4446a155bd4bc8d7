// Words that people bring along from gh, git and other programs, in the words of svc. Loaded for a line that names no command.

/** Verbs behind the thing that they are about. */
const verbs: Readonly<Record<string, string>> = {
  view: 'get',
  show: 'get',
  edit: 'update',
  ls: 'list',
  rm: 'delete',
  remove: 'delete',
  new: 'create',
  add: 'create',
  rerun: 'retry',
}

const whole: readonly (readonly [given: string, ours: string, more?: readonly string[]])[] = [
  ['auth login', 'login'],
  ['auth logout', 'logout'],
  ['auth status', 'whoami'],
  ['task close', 'task transition', ['--status', 'done']],
  ['task comment', 'task comment add'],
  ['secret set', 'secret create'],
  ['workflow run', 'workflow start'],
  ['comment create', 'comment add'],
]

/** Things that are called otherwise elsewhere. */
const things: Readonly<Record<string, string>> = { issue: 'task', runs: 'run', agents: 'agent', tasks: 'task' }

/** The lines that the given one may mean, the likeliest first. None of them need name a command. */
export function inOurWords(words: readonly string[]): string[][] {
  const [first, ...rest] = words
  if (first === undefined) return []
  const thing = Object.hasOwn(things, first) ? things[first]! : first
  const named = [thing, ...rest]
  return [named, ...phrased(named), ...withVerb(named)]
}

function phrased(words: readonly string[]): string[][] {
  const [thing, verb, ...rest] = words
  return whole
    .filter(([given]) => given === `${thing} ${verb}`)
    .map(([, ours, more = []]) => [...ours.split(' '), ...rest, ...more])
}

function withVerb([thing, verb, ...rest]: readonly string[]): string[][] {
  return thing === undefined || verb === undefined || !Object.hasOwn(verbs, verb)
    ? []
    : [[thing, verbs[verb]!, ...rest]]
}
