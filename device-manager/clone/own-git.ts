import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { simpleGit, type SimpleGit } from 'simple-git'
import { systemPath } from '../wall/namespaces.ts'

// git by simple-git, with settings of ours alone. What it lacks (a limit of time that ends git for sure, a bound for its output, a git that
// cannot be started) is supplied by whoever starts this program (run-job.ts).

/**
 * In place of a person's own settings. The clone is made under them, before anybody could write others to it; afterwards git works in a
 * folder of its own, and reads none of the clone's. A host that packs a large repository, or looks through a push, may say nothing for
 * minutes.
 */
const settings = `[core]
	hooksPath = /dev/null
	fsmonitor = false
	untrackedCache = false
	splitIndex = false
	sshCommand = false
	pager = cat
[credential]
	helper =
[protocol]
	allow = never
[protocol "http"]
	allow = always
[http]
	followRedirects = false
	lowSpeedLimit = 1
	lowSpeedTime = 600
[submodule]
	recurse = false
[fetch]
	recurseSubmodules = false
	writeCommitGraph = false
[push]
	recurseSubmodules = no
	followTags = false
[transfer]
	bundleURI = false
[gc]
	auto = 0
[maintenance]
	auto = false
[advice]
	addEmbeddedRepo = false
	detachedHead = false
`

/** The folder that belongs to a clone. */
export const folderBeside = (clone: string): string => `${clone}.svc`
export const startFile = (clone: string): string => join(folderBeside(clone), 'start.json')

/** Makes the folder beside the clone. */
export function makeOwnFolder(clone: string): string {
  const folder = folderBeside(clone)
  mkdirSync(join(folder, 'template'), { recursive: true, mode: 0o700 })
  writeFileSync(join(folder, 'gitconfig'), `${settings}[init]\n\ttemplateDir = ${join(folder, 'template')}\n`)
  return folder
}

/** git in `cwd`, with these variables beside those that all calls have. */
export function gitIn(cwd: string, clone: string, more: Readonly<Record<string, string>> = {}): SimpleGit {
  const own = folderBeside(clone)
  const env: Record<string, string> = {
    PATH: `${systemPath}:/usr/local/bin`,
    HOME: own,
    LC_ALL: 'C',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: join(own, 'gitconfig'),
    GIT_ATTR_NOSYSTEM: '1',
    GIT_ALLOW_PROTOCOL: 'http',
    GIT_PROTOCOL_FROM_USER: '0',
    GIT_TERMINAL_PROMPT: '0',
    GIT_ASKPASS: 'false',
    GIT_SSH_COMMAND: 'false',
    GIT_NO_LAZY_FETCH: '1',
    GIT_NO_REPLACE_OBJECTS: '1',
    GIT_LITERAL_PATHSPECS: '1',
    ...more,
  }
  return simpleGit({
    baseDir: cwd,
    maxConcurrentProcesses: 1,
    trimmed: true,
    allowEnvironment: Object.keys(env),
    // Its guard is against variables and settings of others. These are ours, and switch programs off.
    unsafe: {
      allowUnsafeConfigPaths: true,
      allowUnsafeAskPass: true,
      allowUnsafeSshCommand: true,
      allowUnsafeUrlRewrite: true,
    },
  }).env(env)
}
