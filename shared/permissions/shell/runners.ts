/** Programs and words that make a shell of what they are given: of their arguments, of their input. */
export const shells: ReadonlySet<string> = new Set(
  `sh bash dash zsh ksh mksh ash rbash fish tcsh csh eval source . trap su runuser script watch parallel busybox toybox
  alias sched`.split(/\s+/),
)
/** Programs that run the command that stands somewhere in their arguments. */
const wrappers = new Set([
  ...shells,
  ...`sudo doas pkexec sg newgrp gosu su-exec setpriv capsh runcon env envdir genv command builtin exec nohup gnohup time
  gtime nice gnice ionice chrt taskset stdbuf gstdbuf setsid timeout gtimeout xargs gxargs zargs find gfind fd fdfind
  coreutils unshare nsenter chroot flock strace ltrace gdb perf valgrind systemd-run systemd-inhibit dbus-run-session
  caffeinate arch rlwrap unbuffer coproc function linux32 linux64 setarch prlimit chpst softlimit setuidgid numactl
  cpulimit firejail bwrap proot fakeroot catchsegv tini dumb-init start-stop-daemon entr watchexec hyperfine ssh-agent
  dotenv direnv nix-shell noglob nocorrect - repeat always hash mapfile readarray compgen complete
  set npx bunx pnpx uvx pipx tmux screen byobu at batch ssh xvfb-run dbus-launch choom uclampset ccache sccache distcc
  proxychains proxychains4 torsocks torify tsocks faketime eatmydata chronic systemd-cat cgexec schroot fakechroot
  cross-env cross-env-shell env-cmd dotenvx doppler envchain aws-vault concurrently nodemon wsl cmd powershell pwsh
  s6-setuidgid s6-applyuidgid s6-envdir s6-env s6-softlimit s6-setlock s6-setsid s6-sudo execlineb envuidgid argv0 pgrphack setlock
  fghack with-contenv run0 please sem ifne mispipe pee timelimit rr mpirun mpiexec srun bsub nsjail minijail0 systemd-nspawn
  lxc-attach lxc-execute jexec sshpass autossh mosh pdsh dsh rsh winpty wine shell .shell .system
  `
    .trim()
    .split(/\s+/),
])
/** Programs that start another one in the place of the system. */
const loader = /^ld[-.](?:linux|musl|so)/
/** Programs that run a command behind one of these words of theirs: `npm exec -- rm`, `git bisect run rm`. */
const runningWords: ReadonlyMap<string, readonly string[]> = new Map<string, readonly string[]>([
  ['npm', ['exec', 'x']],
  ['pnpm', ['exec', 'dlx']],
  ['yarn', ['exec', 'dlx']],
  ['bun', ['x']],
  ['lerna', ['exec']],
  ['git', ['foreach', 'run']],
  ['docker', ['exec', 'run']],
  ['docker-compose', ['exec', 'run']],
  ['podman', ['exec', 'run']],
  ...'nerdctl finch buildah apptainer singularity'
    .split(' ')
    .map((name): [string, string[]] => [name, ['exec', 'run']]),
  ...['kubectl', 'oc', 'k3s', 'microk8s', 'minikube', 'ctr', 'crictl'].map((name): [string, string[]] => [
    name,
    ['exec', 'run', 'rsh', 'debug', 'ssh', 'create'],
  ]),
  ...['lxc', 'incus', 'pct', 'multipass'].map((name): [string, string[]] => [name, ['exec']]),
  ...['machinectl', 'limactl', 'adb', 'guix'].map((name): [string, string[]] => [name, ['shell', 'environment']]),
  ...['toolbox', 'distrobox', 'flatpak', 'snap'].map((name): [string, string[]] => [name, ['run', 'enter']]),
  ...['vagrant', 'colima', 'fly', 'flyctl', 'gcloud'].map((name): [string, string[]] => [name, ['ssh']]),
  ['bundle', ['exec']],
  ['nix', ['develop', 'shell']],
  ['mise', ['exec', 'x']],
  ...['asdf', 'rbenv', 'pyenv', 'fnm', 'nvm'].map((name): [string, string[]] => [name, ['exec', 'run']]),
  ...'uv poetry pipenv pdm hatch rye conda mamba micromamba volta devbox op infisical railway heroku'
    .split(' ')
    .map((name): [string, string[]] => [name, ['run']]),
])

/** The names of all of them, as docs/permissions.md lists them: a program, or a program and a word of its own. */
export const runnerNames = (): string[] => [
  ...wrappers,
  ...[...runningWords].flatMap(([name, words]) => words.map((word) => `${name} ${word}`)),
]

/** Says whether the program, by its plain name in small letters, runs a command that stands in its arguments. */
export function runsItsWords(name: string, words: readonly string[]): boolean {
  if (wrappers.has(name) || loader.test(name)) return true
  const running = runningWords.get(name)
  return running !== undefined && words.some((word) => running.includes(word))
}

/** The names of the functions that a line defines. */
export function functionsIn(line: string): string[] {
  const found = line.matchAll(/(?:^|[\s;|&({])([^\s;|&(){}<>]+)[ \t]*\([ \t]*\)|\bfunction[ \t]+([^\s;|&(){}<>]+)/g)
  return [...found].map(([, plain, named]) => plain ?? named!)
}

/** Matches what stands before the value in `PAGER=x`, `core.pager=x`, `--to-command=x` and `EXEC:x`. */
export const nameBefore = /^(?:[A-Za-z_]\w*(?:\[[^\]]*\])?\+?=|[-\w.+]+=|[A-Z]+:)/

/** Replaces what stands for blanks in a text that `env -S` splits. */
export const splitByEnv = (word: string): string =>
  word.replace(/^(?:-\w*?S|--split-string=)/, '').replaceAll(/\\[_tnrfv]/g, ' ')
