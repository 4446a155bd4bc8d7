/**
 * The condition that a row's workspace has not been removed. A removed workspace is gone for everybody at once, its rows go
 * one batch after another: whoever reads rows without having read their workspace asks for this.
 */
export const inKeptWorkspace = (table: string): string =>
  `not exists (select 1 from workspaces where workspaces.id = ${table}.workspace_id and workspaces.removed_at is not null)`
