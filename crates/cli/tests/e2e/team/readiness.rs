//! What `/readyz` tells a load balancer of a server with several graphs.

use std::thread;
use std::time::{Duration, Instant};

use quipu_store_postgres::PostgresDatabase;
use quipu_testkit::postgres::Cluster;
use serde_json::json;

use super::{TeamServer, wait_for};
use crate::client::modern;
use crate::http::Post;

#[test]
fn readiness_depends_on_the_database_and_not_on_one_graph() {
    let Some(mut cluster) = Cluster::of_test() else { return };
    let url = cluster.database();
    let database = PostgresDatabase::connect(&url).unwrap();
    database.migrate().unwrap();
    for name in ["one", "two", "three"] {
        database.create_graph(name).unwrap();
    }
    let server = TeamServer::launch_with(&url, &[]);
    server.await_ready();
    let status = || Post::get("/readyz").send(server.address).unwrap().status;

    cluster.stop();
    wait_for("not ready without its database, although no graph is open", || status() == 503);
    cluster.start_again();
    wait_for("ready again", || status() == 200);

    let mut list = Post::call("list_nodes", &modern(json!({ "name": "list_nodes", "arguments": {} })));
    list.line = "POST /g/one/mcp HTTP/1.1".into();
    assert_eq!(list.send(server.address).unwrap().status, 200);
    database.delete_graph("one").unwrap();
    let deleted = Instant::now();
    while deleted.elapsed() < Duration::from_secs(8) {
        assert_eq!(status(), 200, "the server is ready for the other graphs");
        thread::sleep(Duration::from_millis(50));
    }
}
