#loc = loc("kernels.py":166:0)
#loc1 = loc(unknown)
#loc10 = loc("kernel.mlir":14:23)
"builtin.module"() ({
  "tt.func"() <{function_type = (!tt.ptr<i32>) -> (), sym_name = "count_followers", sym_visibility = "public"}> ({
  ^bb0(%arg0: !tt.ptr<i32> loc("kernels.py":166:0)):
    %0 = "arith.constant"() <{value = 1 : i32}> : () -> i32 loc(#loc1)
    %1 = "arith.constant"() <{value = 0 : i32}> : () -> i32 loc(#loc1)
    %2 = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32 loc(#loc2)
    %3 = "arith.addi"(%2, %0) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32 loc(#loc3)
    %4 = "tt.get_num_programs"() <{axis = 0 : i32}> : () -> i32 loc(#loc4)
    %5 = "arith.cmpi"(%3, %4) <{predicate = 2 : i64}> : (i32, i32) -> i1 loc(#loc5)
    %6 = "scf.if"(%5) ({
      %9 = "tt.addptr"(%arg0, %2) : (!tt.ptr<i32>, i32) -> !tt.ptr<i32> loc(#loc7)
      %10 = "tt.addptr"(%9, %0) : (!tt.ptr<i32>, i32) -> !tt.ptr<i32> loc(#loc8)
      %11 = "scf.while"(%1) ({
      ^bb0(%arg2: i32 loc("kernel.mlir":14:23)):
        %13 = "arith.cmpi"(%arg2, %1) <{predicate = 0 : i64}> : (i32, i32) -> i1 loc(#loc11)
        "scf.condition"(%13, %arg2) : (i1, i32) -> () loc(#loc11)
      }, {
      ^bb0(%arg1: i32 loc(unknown)):
        %12 = "tt.load"(%10) <{boundaryCheck = array<i32>, cache = 1 : i32, evict = 1 : i32, isVolatile = true, operandSegmentSizes = array<i32: 1, 0, 0>}> : (!tt.ptr<i32>) -> i32 loc(#loc12)
        "scf.yield"(%12) : (i32) -> () loc(#loc13)
      }) : (i32) -> i32 loc(#loc9)
      "scf.yield"(%11) : (i32) -> () loc(#loc9)
    }, {
      "scf.yield"(%1) : (i32) -> () loc(#loc1)
    }) : (i1) -> i32 loc(#loc6)
    %7 = "tt.addptr"(%arg0, %2) : (!tt.ptr<i32>, i32) -> !tt.ptr<i32> loc(#loc14)
    %8 = "arith.addi"(%6, %0) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32 loc(#loc15)
    "tt.store"(%7, %8) <{boundaryCheck = array<i32>, cache = 1 : i32, evict = 1 : i32}> : (!tt.ptr<i32>, i32) -> () loc(#loc16)
    "tt.return"() : () -> () loc(#loc17)
  }) {noinline = false} : () -> () loc(#loc)
}) : () -> () loc(#loc)
#loc2 = loc("kernels.py":168:28)
#loc3 = loc("kernels.py":170:17)
#loc4 = loc("kernels.py":170:37)
#loc5 = loc("kernels.py":170:21)
#loc6 = loc("kernels.py":170:7)
#loc7 = loc("kernels.py":172:41)
#loc8 = loc("kernels.py":172:51)
#loc9 = loc("kernels.py":171:8)
#loc11 = loc("kernels.py":171:27)
#loc12 = loc("kernels.py":172:32)
#loc13 = loc("kernels.py":172:12)
#loc14 = loc("kernels.py":173:22)
#loc15 = loc("kernels.py":173:43)
#loc16 = loc("kernels.py":173:31)
#loc17 = loc("kernels.py":173:4)

