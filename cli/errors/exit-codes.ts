/** The meanings of the exit status of `svc` (docs/cli.md, `svc help exit-codes`). A number never gets a new meaning. */
export const exitCodes = {
  ok: { status: 0, text: 'Done.' },
  refused: { status: 1, text: 'The server, or svc itself, refused the call; the error is on standard error.' },
  usage: { status: 2, text: 'The command line cannot be read: unknown command or flag, or a value that does not fit.' },
  unreachable: {
    status: 3,
    text: 'The server cannot be reached, gave no answer, or something else answered in its place.',
  },
  not_signed_in: { status: 4, text: 'There is no login, or the server does not accept its token.' },
  wait_timed_out: {
    status: 5,
    text: 'The time given to --wait is over. A run that was waited for goes on; a question is closed.',
  },
  run_failed: { status: 6, text: 'The run that was waited for failed.' },
  run_cancelled: { status: 7, text: 'The run that was waited for was cancelled.' },
  not_started: { status: 8, text: 'The call started no run (kind not_dispatched), so there is nothing to wait for.' },
  no_daemon: { status: 9, text: 'The device manager of this machine does not run, or does not answer.' },
  bug: { status: 70, text: 'svc itself failed. Set SVC_DEBUG=1 to see where.' },
} as const

export type ExitName = keyof typeof exitCodes

export const exitStatus = (name: ExitName): number => exitCodes[name].status
