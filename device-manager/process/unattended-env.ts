import { basename } from 'node:path'

/**
 * Nobody sits at the terminal of a run: what would open a pager or an editor, or ask, goes on without or ends with its own
 * message. These count instead of what the person's shell sets. An editor that does nothing takes what is proposed (a merge's message), and leaves
 * alone what it was given to change: a commit without a message is refused by git.
 */
export const unattendedEnv: Readonly<Record<string, string>> = {
  PAGER: 'cat',
  GIT_PAGER: 'cat',
  MANPAGER: 'cat',
  SYSTEMD_PAGER: 'cat',
  GH_PAGER: 'cat',
  AWS_PAGER: 'cat',
  PSQL_PAGER: 'cat',
  BAT_PAGER: 'cat',
  DELTA_PAGER: 'cat',
  EDITOR: 'true',
  VISUAL: 'true',
  GIT_EDITOR: 'true',
  GIT_SEQUENCE_EDITOR: 'true',
  KUBE_EDITOR: 'true',
  SVN_EDITOR: 'true',
  HGEDITOR: 'true',
  GIT_MERGE_AUTOEDIT: 'no',
  GIT_TERMINAL_PROMPT: '0',
  GCM_INTERACTIVE: 'never',
  // ssh asks for passwords, and about hosts that it does not know, by a program that refuses instead of at the terminal.
  SSH_ASKPASS: 'false',
  SSH_ASKPASS_REQUIRE: 'force',
  // No such terminal: gpg would have its passphrases asked for at that of the run.
  GPG_TTY: '/dev/none',
  DEBIAN_FRONTEND: 'noninteractive',
  APT_LISTCHANGES_FRONTEND: 'none',
  NEEDRESTART_MODE: 'a',
  NONINTERACTIVE: '1',
  npm_config_yes: 'true',
  COREPACK_ENABLE_DOWNLOAD_PROMPT: '0',
  PIP_NO_INPUT: '1',
  POETRY_NO_INTERACTION: '1',
  COMPOSER_NO_INTERACTION: '1',
  GH_PROMPT_DISABLED: '1',
  AWS_CLI_AUTO_PROMPT: 'off',
  CLOUDSDK_CORE_DISABLE_PROMPTS: '1',
  TF_INPUT: '0',
}

/** Shells that read a file of the person's before each line that they are given, and how each sets a variable. */
const readers: Readonly<Record<string, (name: string, value: string) => string>> = {
  zsh: (name, value) => `export ${name}='${value}'`,
  fish: (name, value) => `set -gx ${name} '${value}'`,
  csh: (name, value) => `setenv ${name} '${value}'`,
  tcsh: (name, value) => `setenv ${name} '${value}'`,
}

/** Returns the script with the variables set once more, on its first line, where the shell's own file may have set others. */
export function unattendedScript(script: string, shell: string): string {
  const set = readers[basename(shell)]
  if (set === undefined) return script
  return `${Object.entries(unattendedEnv)
    .map(([name, value]) => set(name, value))
    .join('; ')}; ${script}`
}
