import type { Command } from './arguments/command.ts'
import type { Flow } from './context.ts'

/**
 * The flow of each command that is more than one call of the API. Each is loaded only when it is used, since every call
 * pays for start-up.
 */
const flows: Readonly<Record<string, () => Promise<Flow>>> = {
  'agent get': async () => (await import('./flows/batch-get.ts')).batchGet,
  'agent run': async () => (await import('./flows/run/create.ts')).agentRun,
  'agent config set': async () => (await import('./flows/permission-rules.ts')).agentConfigSet,
  'agent permissions list': async () => (await import('./flows/permission-rules.ts')).permissionsList,
  'agent permissions add': async () => (await import('./flows/permission-rules.ts')).permissionsChange,
  'agent permissions remove': async () => (await import('./flows/permission-rules.ts')).permissionsChange,
  'agent permissions check': async () => (await import('./flows/permissions-check.ts')).permissionsCheck,
  'run get': async () => (await import('./flows/batch-get.ts')).batchGet,
  'run create': async () => (await import('./flows/run/create.ts')).runCreate,
  'run read': async () => (await import('./flows/run/read.ts')).runRead,
  'run events': async () => (await import('./flows/run/events.ts')).runEvents,
  'run cancel': async () => (await import('./flows/run/cancel.ts')).runCancel,
  'run retry': async () => (await import('./flows/run/retry.ts')).runRetry,
  'run output': async () => (await import('./flows/run/output.ts')).runOutput,
  'run change-set': async () => (await import('./flows/run/change-set.ts')).runChangeSet,
  'workflow start': async () => (await import('./flows/workflow-start.ts')).workflowStart,
  'automation hook': async () => (await import('./flows/automation-hook.ts')).automationHook,
  'file list': async () => (await import('./flows/file/several.ts')).fileList,
  'file upload': async () => (await import('./flows/file/upload.ts')).fileUpload,
  'file replace': async () => (await import('./flows/file/upload.ts')).fileReplace,
  'file read': async () => (await import('./flows/file/download.ts')).fileRead,
  'file download': async () => (await import('./flows/file/download.ts')).fileDownload,
  'file bulk-delete': async () => (await import('./flows/file/several.ts')).fileBulk,
  'file bulk-relate': async () => (await import('./flows/file/several.ts')).fileBulk,
  'wiki get': async () => (await import('./flows/wiki.ts')).wikiGet,
  'wiki ingest': async () => (await import('./flows/wiki-ingest.ts')).wikiIngest,
  'wiki restore': async () => (await import('./flows/wiki.ts')).wikiRestore,
  'learning add': async () => (await import('./flows/learning/bullets.ts')).learningWrite,
  'learning update': async () => (await import('./flows/learning/bullets.ts')).learningWrite,
  'learning accept': async () => (await import('./flows/learning/review.ts')).learningReview,
  'learning reject': async () => (await import('./flows/learning/review.ts')).learningReview,
  'task get': async () => (await import('./flows/task/get.ts')).taskGet,
  'task batch': async () => (await import('./flows/task/batch.ts')).taskBatch,
  'task assign': async () => (await import('./flows/task/change.ts')).taskAssign,
  'task move': async () => (await import('./flows/task/change.ts')).taskMove,
  'task transition': async () => (await import('./flows/task/transition.ts')).taskTransition,
  'task watch add': async () => (await import('./flows/task/watch.ts')).taskWatch,
  'task watch remove': async () => (await import('./flows/task/watch.ts')).taskWatch,
  'question ask': async () => (await import('./flows/question-ask.ts')).questionAsk,
  'question answer': async () => (await import('./flows/question-answer.ts')).questionAnswer,
  'secret create': async () => (await import('./flows/secret-create.ts')).secretCreate,
  'conversation send': async () => (await import('./flows/conversation-send.ts')).conversationSend,
  'folder add': async () => (await import('./flows/device/folder-add.ts')).folderAdd,
  'device set': async () => (await import('./flows/device/set.ts')).deviceSet,
  'device connect': async () => (await import('./flows/device/connect.ts')).deviceConnect,
  'device disconnect': async () => (await import('./flows/device/disconnect.ts')).deviceDisconnect,
  'device status': async () => (await import('./flows/device/status.ts')).deviceStatus,
  'device refresh': async () => (await import('./flows/device/operations.ts')).deviceRefresh,
  'device sync-config': async () => (await import('./flows/device/operations.ts')).deviceSyncConfig,
  'device spool': async () => (await import('./flows/device/operations.ts')).deviceSpool,
  'device test-error': async () => (await import('./flows/device/operations.ts')).deviceTestError,
  'device restart': async () => (await import('./flows/device/restart.ts')).deviceRestart,
  'device install-service': async () => (await import('./flows/device/service.ts')).deviceInstallService,
  'device uninstall-service': async () => (await import('./flows/device/service.ts')).deviceUninstallService,
  'device logs': async () => (await import('./flows/device/logs.ts')).deviceLogs,
  'company use': async () => (await import('./flows/sign-in/company-use.ts')).companyUse,
  login: async () => (await import('./flows/sign-in/login.ts')).login,
  logout: async () => (await import('./flows/sign-in/login.ts')).logout,
  'auth list': async () => (await import('./flows/sign-in/auth-tokens.ts')).authList,
  'auth devices': async () => (await import('./flows/sign-in/auth-tokens.ts')).authDevices,
  'auth revoke': async () => (await import('./flows/sign-in/auth-tokens.ts')).authRevoke,
  whoami: async () => (await import('./flows/sign-in/whoami.ts')).whoami,
  api: async () => (await import('./flows/api.ts')).api,
  completion: async () => (await import('./flows/completion.ts')).completion,
  'complete-words': async () => (await import('./flows/completion.ts')).completeWords,
  help: async () => (await import('./flows/help.ts')).help,
  version: async () => (await import('./flows/help.ts')).version,
}

export const flowNames: readonly string[] = Object.keys(flows)

export async function flowOf(command: Command): Promise<Flow> {
  const load = Object.hasOwn(flows, command.name) ? flows[command.name]! : null
  return load === null ? (await import('./http/route-call.ts')).callRoute : load()
}
