import { importsOf } from './check-floors.ts'

/** The one file that writes rows of `runs`, by events of the machine beside it. */
const writer = 'control-plane/run/change-store.ts'
/** The table's own file, which describes it and reads it. */
const store = 'control-plane/resources/runs/store.ts'
/**
 * Migrations write as the schema was in their time. The rows of removed workspaces go with those of all other tables, by a list in which
 * `runs` is one name.
 */
const excepted = /^control-plane\/db\/migrations\/|^control-plane\/sweeps\/removal-store\.ts$/

const writes = '(?:update|insert|insertNew|inserter|replace|replaceIfSame|returning|delete|del)'
const inSql = /\b(?:update|insert into|delete from|merge into)\s+"?runs"?(?![\w"])/i
const builtByKnex = new RegExp(
  `\\(\\s*['"\`]runs(?: as \\w+)?['"\`]\\s*\\)(?:(?!\\b(?:await|return|const|export)\\b)[^;])*?\\.${writes}\\(`,
)
const described = /\btable\(\s*['"`]runs['"`]/

/** Returns what writes rows of `runs` in a file of the control plane, or describes their table once more. */
export function runWriteProblems(file: string, text: string): string[] {
  if (!file.startsWith('control-plane/') || file.endsWith('.test.ts') || file === writer || excepted.test(file))
    return []
  const isWriting =
    inSql.test(text) || builtByKnex.test(text) || namesOfTable(file, text).some((name) => writesBy(name).test(text))
  return [
    ...(isWriting ? [`${file}: writes rows of runs; send an event of the machine by ${writer}`] : []),
    ...(described.test(text) && file !== store ? [`${file}: describes the table of runs, as ${store} does`] : []),
  ]
}

const writesBy = (name: string) => new RegExp(`(?<![\\w.])${name}\\s*\\.${writes}\\(`)

/** What the table is called in the file: workflows call their own table `runs`, too. */
function namesOfTable(file: string, text: string): string[] {
  if (file === store) return ['runs']
  if (!importsOf(file, text).some(({ target, names }) => target === store && names.includes('runs'))) return []
  return [/\bruns as (\w+)/.exec(text)?.[1] ?? 'runs']
}
